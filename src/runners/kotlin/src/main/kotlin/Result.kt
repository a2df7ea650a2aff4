package transect.runner

import java.io.OutputStream
import java.nio.*
import java.nio.file.Path
import java.nio.file.StandardOpenOption.*
import kotlin.io.path.*

/** What the program leaves in the folder `out`: lines of JSON, times, and facts of the process. */
class Result(private val folder: Path) : AutoCloseable {
    /** The last line, where all goes well. */
    val facts = mutableMapOf<String, Any?>("status" to "ok")
    private val lines = folder.resolve("result.jsonl").outputStream(CREATE, APPEND)

    fun say(line: Map<String, Any?>) = lines.write("${json(line)}\n".encodeToByteArray())

    /** Keep what the system says of the process: after the measurement, before more is written. */
    fun process() {
        val found = listOf("status", "maps").associateWith { Path("/proc/self/$it").readBytes() }
        found.forEach { (name, bytes) -> folder.resolve("$name.txt").writeBytes(bytes) }
    }

    fun numbers(file: String, numbers: LongArray) {
        val bytes = ByteBuffer.allocate(8 * numbers.size).order(ByteOrder.LITTLE_ENDIAN)
        bytes.asLongBuffer().put(numbers)
        folder.resolve(file).writeBytes(bytes.array())
    }

    override fun close() = lines.close()
}

private fun json(value: Any?): String = when (value) {
    is Map<*, *> -> value.entries.joinToString(", ", "{", "}") { "${json(it.key)}: ${json(it.value)}" }
    is List<*> -> value.joinToString(", ", "[", "]") { json(it) }
    is String -> '"' + value.replace(Regex("[\"\\\\\u0000-\u001f]")) { "\\u%04x".format(it.value[0].code) } + '"'
    else -> "$value"
}

/** The outputs, a file each, into which batches are written as they come. */
class Outputs(plan: Plan) {
    private class Joined(val dtype: Int, val shape: LongArray, val stream: OutputStream)
    private val folder = Path(plan.text(Role.OUTPUTS)!!)
    private val names = plan.entries(Role.OUTPUT).map { it.name }
    private val outputs = arrayOfNulls<Joined>(names.size)

    /** Append what a run gave; [rows]: how many the batch had. Throws Fault for an output of other rows. */
    fun append(results: List<Numbers?>, rows: Long?) = results.forEachIndexed { index, found ->
        if (found == null) return@forEachIndexed
        if (rows != null && found.shape.firstOrNull() != rows) {
            val shape = found.shape.contentToString()
            throw Fault("output '${names[index]}' has shape $shape, expected a first axis of the batch's $rows rows")
        }
        outputs[index]?.let {
            val (now, before) = found.shape.toList() to it.shape.toList()
            if (now.drop(1) != before.drop(1)) throw Fault("output '${names[index]}' has shape $now, before $before")
        }
        val one = outputs[index]?.also { it.shape[0] += rows!! }
            ?: Joined(found.dtype, found.shape.clone(), folder.resolve("output-$index.bin").outputStream().buffered())
        outputs[index] = one
        one.stream.write(found.bytes.array(), found.bytes.arrayOffset(), found.bytes.limit())
    }

    /** Close the files; return the fact `outputs`. */
    fun finish() = outputs.map { one ->
        one?.stream?.close()
        one?.let { listOf(it.dtype, it.shape.toList()) }
    }
}
