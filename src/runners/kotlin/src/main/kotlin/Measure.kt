package transect.runner

import ai.onnxruntime.OrtEnvironment
import java.lang.management.ManagementFactory
import kotlin.math.*

/** Level `latency`: all rows once, then timed until it is known well. */
fun latency(environment: OrtEnvironment, plan: Plan, result: Result) = Session(environment, plan, null).use { session ->
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
    val times = measure(session, full, plan, result)
    result.process()
    result.numbers("times.bin", times)
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

/** Time until the interval is narrow or the time is up; bind, run and copy of each iteration. */
private fun measure(session: Session, batches: List<Map<String, Numbers>>, plan: Plan, result: Result): LongArray {
    var times = LongArray(3 * max(plan.minRuns, 1024))
    var count = 0
    var stop: String? = null
    var nextCheck = plan.minRuns
    // The virtual machine cannot stop collecting: begin with an empty heap, and say how often it collected.
    System.gc()
    val collectors = ManagementFactory.getGarbageCollectorMXBeans()
    val collected = collectors.sumOf { it.collectionCount }
    val begin = System.nanoTime()
    while (stop == null) {
        session.step(batches[count % batches.size])
        if (3 * count == times.size) times = times.copyOf(2 * times.size)
        session.times.copyInto(times, 3 * count++)
        if (count < plan.minRuns) continue
        if (count >= nextCheck) {
            nextCheck = ceil(1.25 * count).toInt()
            if (intervalIsNarrow(LongArray(count) { times[3 * it + 1] })) stop = "interval-reached"
        }
        if (stop == null && System.nanoTime() - begin >= plan.maxNs) stop = "time-limit"
    }
    result.facts["language_options"] = mapOf(
        "jvm_flags" to ManagementFactory.getRuntimeMXBean().inputArguments,
        "collections_while_timed" to collectors.sumOf { it.collectionCount } - collected,
    )
    result.facts["stop_reason"] = stop
    return times.copyOf(3 * count)
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
