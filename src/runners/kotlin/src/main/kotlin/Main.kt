package transect.runner

import ai.onnxruntime.*
import ai.onnxruntime.OrtException.OrtErrorCode
import kotlin.io.path.Path
import kotlin.system.exitProcess

/** How a run ends that is neither well nor a crash: [code] 2 for bad input, 3 for what is not there. */
class Fault(message: String, val code: Int = 2) : RuntimeException(message)

/** ONNX Runtime from Kotlin, at level `latency` of the runner contract (docs/runner-contract.md). */
fun main(arguments: Array<String>) {
    val code = try {
        run(Plan(Path(arguments.singleOrNull() ?: throw Fault("usage: transect-runner-kotlin PLAN"))))
    } catch (refused: Fault) {
        refused.code.also { complain(refused.message) }
    }
    exitProcess(code)
}

private fun run(plan: Plan): Int = Result(Path(plan.text(Role.OUT)!!)).use { result ->
    try {
        work(plan, result)
        0
    } catch (error: Throwable) {
        tell(error, result)
    }
}

private fun work(plan: Plan, result: Result) {
    if (!plan.isLatency) throw Fault("the runner in Kotlin has the level latency only", 3)
    if (plan.text(Role.PROVIDER) != "cpu") throw Fault("the runner in Kotlin has the provider cpu only", 3)
    val environment = environment(plan.text(Role.LIBRARY)!!)
    // The API has no place for options of the CPU provider.
    val lost = plan.entries(Role.PROVIDER_OPTION).map { "provider_options" }.distinct()
    result.facts += mapOf(
        "runtime_version" to environment.version,
        "language_version" to "Kotlin ${KotlinVersion.CURRENT} (Java ${System.getProperty("java.version")})",
        "provider_used" to "cpu",
        "options_not_set" to lost,
        "run_includes" to listOf<String>(),
    )
    latency(environment, plan, result)
    result.say(result.facts)
}

/** Load ONNX Runtime, which the binding finds by its name, and the binding: none is taken from the jar. */
private fun environment(library: String): OrtEnvironment {
    System.load(library)
    System.load(System.getProperty("transect.binding"))
    System.setProperty("onnxruntime.native.onnxruntime.skip", "true")
    System.setProperty("onnxruntime.native.onnxruntime4j_jni.skip", "true")
    return OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_ERROR, "transect")
}

/** Say what went wrong as the last line and on standard error; return the exit code. */
private fun tell(error: Throwable, result: Result): Int {
    val skipped = error is Fault && error.code == 3
    val bad = error is Fault || error is OrtException && error.code == OrtErrorCode.ORT_INVALID_ARGUMENT
    val message = if (bad) error.message else "$error"
    val cause = when {
        bad -> "bad-input"
        error is LinkageError -> "missing-dependency"
        error is OutOfMemoryError || Regex("bad_alloc|Failed to allocate") in "$message" -> "out-of-memory"
        else -> "crash"
    }
    complain(if (skipped) "skipped: $message" else message)
    if (skipped) result.say(mapOf("status" to "skipped", "reason" to message))
    else result.say(mapOf("status" to "failed", "cause" to cause, "message" to message))
    return if (skipped) 3 else if (bad) 2 else 1
}

private fun complain(message: String?) = System.err.println("kotlin: " + "$message".trim().replace(Regex("\\s+"), " "))
