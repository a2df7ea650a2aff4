package transect.runner

import java.io.DataInputStream
import java.io.IOException
import java.net.Socket

private const val KEY = 32

/** Turns with other programs, each of which waits while another runs: docs/runner-contract.md. */
class Turns private constructor(host: String, port: Int, key: String) {
    private val peer = "$host:$port"
    private val socket: Socket
    private val counts: DataInputStream

    init {
        try {
            socket = Socket(host, port)
            socket.getOutputStream().write(key.toByteArray(Charsets.US_ASCII))
            counts = DataInputStream(socket.getInputStream())
        } catch (error: IOException) {
            throw IOException("turns: $peer: ${error.message}")
        }
    }

    /** Say 'r', ready, or 'd', done, and wait; return the iterations of the next turn, 0: no more. */
    fun next(said: Char): Long = try {
        socket.getOutputStream().write(said.code)
        java.lang.Long.reverseBytes(counts.readLong())
    } catch (_: IOException) {
        throw IOException("turns: $peer ended the connection")
    }

    companion object {
        /** Connect to who gives the turns; null where none are to be taken. */
        fun join(): Turns? {
            val parts = (System.getenv("TRANSECT_TURNS") ?: return null).split(":")
            if (parts.size != 3 || parts[2].length != KEY) throw Fault("TRANSECT_TURNS: expected HOST:PORT:KEY")
            return Turns(parts[0], parts[1].toInt(), parts[2])
        }
    }
}
