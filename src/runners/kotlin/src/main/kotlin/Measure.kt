package transect.runner

import ai.onnxruntime.OrtEnvironment
import java.lang.management.ManagementFactory
import kotlin.math.*

/** Level `latency`: all rows once, then timed until it is known well. */
fun latency(environment: OrtEnvironment, plan: Plan, result: Result) {
    val turns = Turns.join()
    Session(environment, plan, null).use { measured(it, environment, plan, turns, result) }
}

private fun measured(session: Session, environment: OrtEnvironment, plan: Plan, turns: Turns?, result: Result) {
    result.facts["session_ns"] = session.sessionNs
    val batches = batches(plan)
    session.step(batches[0])
    // CLOCK_MONOTONIC, in HotSpot on Linux.
    result.facts["first_result_ns"] = System.nanoTime()
    val outputs = Outputs(plan)
    for (batch in batches) {
        session.step(batch)
        outputs.append(session.results, if (plan.batch == 0L) null else batch.values.first().shape[0])
    }
    result.facts["outputs"] = outputs.finish()
    val full = if (plan.batch == 0L) batches else batches.take((plan.rows / plan.batch).toInt())
    repeat(plan.warmup) { session.step(full[it % full.size]) }
    // The virtual machine cannot stop collecting: begin with an empty heap, and say how often it collected.
    System.gc()
    val collectors = ManagementFactory.getGarbageCollectorMXBeans()
    val collected = collectors.sumOf { it.collectionCount }
    val series = Series(session, full)
    result.facts["stop_reason"] = if (turns == null) untilNarrow(series, plan) else takeTurns(series, turns)
    result.facts["language_options"] = mapOf(
        "jvm_flags" to ManagementFactory.getRuntimeMXBean().inputArguments,
        "collections_while_timed" to collectors.sumOf { it.collectionCount } - collected,
    )
    result.process()
    result.numbers("times.bin", series.times.copyOf(3 * series.count))
    plan.text(Role.PROFILE)?.let { prefix ->
        Session(environment, plan, prefix).use { profiled ->
            result.numbers("profile_times.bin", LongArray(10) { profiled.step(full[0]); profiled.times[1] })
            result.facts["profile_file"] = profiled.endProfile()
        }
    }
}

/** The inputs by name, a batch each, the partial one included; or one of all. */
private fun batches(plan: Plan): List<Map<String, Numbers>> {
    val whole = plan.entries(Role.INPUT).associate { it.name to Numbers(it.dtype, it.shape.toLongArray(), it.data()) }
    if (plan.batch == 0L) return listOf(whole)
    return (0 until plan.rows step plan.batch).map { first ->
        whole.mapValues { (_, all) ->
            val row = all.bytes.capacity() / plan.rows.toInt()
            val count = min(plan.batch, plan.rows - first)
            val bytes = all.bytes.slice(first.toInt() * row, count.toInt() * row)
            Numbers(all.dtype, longArrayOf(count, *all.shape.drop(1).toLongArray()), bytes)
        }
    }
}

/** Bind, run and copy of each iteration, in nanoseconds. */
private class Series(private val session: Session, private val batches: List<Map<String, Numbers>>) {
    var times = LongArray(3 * 1024)
    var count = 0

    fun step() {
        session.step(batches[count % batches.size])
        if (3 * count == times.size) times = times.copyOf(2 * times.size)
        session.times.copyInto(times, 3 * count++)
    }
}

/** Time turn by turn; nothing is timed while it waits. Returns why it stopped. */
private fun takeTurns(series: Series, turns: Turns): String {
    var left = turns.next('r')
    while (left > 0) {
        while (left-- > 0) series.step()
        left = turns.next('d')
    }
    return "turns"
}

/** Time until the interval is narrow or the time is up; return which. */
private fun untilNarrow(series: Series, plan: Plan): String {
    var nextCheck = plan.minRuns
    val begin = System.nanoTime()
    while (true) {
        series.step()
        val count = series.count
        if (count < plan.minRuns) continue
        if (count >= nextCheck) {
            nextCheck = ceil(1.25 * count).toInt()
            if (intervalIsNarrow(LongArray(count) { series.times[3 * it + 1] })) return "interval-reached"
        }
        if (System.nanoTime() - begin >= plan.maxNs) return "time-limit"
    }
}

/**
 * Tell whether the 95 % interval of the median is at most 2 % of the median wide.
 *
 * Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of Computer and
 * Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
 */
private fun intervalIsNarrow(runs: LongArray): Boolean {
    val count = runs.size
    val half = 0.98 * sqrt(count.toDouble())
    val low = floor(0.5 * count - half).toInt()
    val high = ceil(0.5 * count + 1 + half).toInt()
    if (low < 1 || high > count) return false
    runs.sort()
    val median = 0.5 * (runs[(count - 1) / 2] + runs[count / 2])
    return runs[high - 1] - runs[low - 1] <= 0.02 * median
}
