package transect.runner

import java.io.IOException
import java.nio.*
import java.nio.channels.FileChannel
import java.nio.file.Path
import kotlin.io.path.*

/** In the order of the contract's numbers; those behind are of no level that is here. */
enum class Role { NONE, LIBRARY, PROVIDER, OUT, OPTION, PROVIDER_OPTION, MODEL, OUTPUTS, INPUT, OUTPUT, PROFILE, OTHER }

/** A row of the plan's table; [at] and [size] are its data's bytes in the file that [text] names. */
class Entry(
    val role: Role, val dtype: Int, val shape: List<Long>, val name: String, val text: String,
    private val at: Long, private val size: Long,
) {
    /** The data, in memory as a whole: nothing is fetched while it is timed. */
    fun data(): ByteBuffer {
        if (size == 0L) return ByteBuffer.allocateDirect(0) // A mapping of nothing has no address.
        if (size > Int.MAX_VALUE) throw Fault("'$name' has $size bytes: buffers hold less than 2 GiB")
        try {
            return FileChannel.open(Path(text)).use { it.map(FileChannel.MapMode.READ_ONLY, at, size).load() }
        } catch (error: IOException) {
            throw Fault("$text: cannot be read: $error")
        }
    }
}

/** What the program is to do; the format is the contract's. All but its head was checked before. */
class Plan(path: Path) {
    private val file = read(path)
    val isLatency = file.getInt(24) == 1

    /** Rows of a batch; 0: the tensors whole. */
    val batch = file.getLong(32)
    val rows = file.getLong(40)
    val warmup = file.getLong(48).toInt()
    val minRuns = file.getLong(56).toInt()
    val maxNs = file.getLong(64)
    private val all = List(file.getInt(28)) { entry(192 + 128 * it) }

    /** The entries of a role, in their order. */
    fun entries(role: Role) = all.filter { it.role == role }

    fun text(role: Role) = entries(role).firstOrNull()?.text

    private fun entry(at: Int) = Entry(
        Role.entries[file.getInt(at).coerceAtMost(Role.OTHER.ordinal)],
        file.getInt(at + 8),
        List(file.getInt(at + 12)) { file.getLong(at + 72 + 8 * it) },
        text(file.getLong(at + 24), file.getLong(at + 32)),
        text(file.getLong(at + 40), file.getLong(at + 48)),
        file.getLong(at + 56), file.getLong(at + 64),
    )

    private fun text(at: Long, size: Long) = file.array().decodeToString(at.toInt(), (at + size).toInt())
}

/** Throws Fault for a file that is no plan of this version. */
private fun read(path: Path): ByteBuffer {
    val raw = try {
        path.readBytes()
    } catch (error: IOException) {
        throw Fault("$path: cannot be read: $error")
    }
    val file = ByteBuffer.wrap(raw).order(ByteOrder.LITTLE_ENDIAN)
    val wrong = when {
        raw.size < 24 || raw.decodeToString(0, 8) != "TRANSECT" ->
            "is no plan, expected a file that begins with TRANSECT"
        file.getInt(8) != 0x01020304 ->
            "is of another byte order: mark %#010x, expected 0x01020304".format(file.getInt(8))
        file.getInt(12) != 1 -> "is of version ${file.getInt(12).toUInt()}, expected 1"
        file.getLong(16) != raw.size.toLong() || raw.size < 192 ->
            "holds ${raw.size} bytes, expected ${file.getLong(16).toULong()}"
        else -> return file
    }
    throw Fault("$path: $wrong")
}
