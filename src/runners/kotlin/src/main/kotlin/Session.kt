package transect.runner

import ai.onnxruntime.*
import ai.onnxruntime.OrtException.OrtErrorCode.*
import ai.onnxruntime.OrtLoggingLevel.*
import ai.onnxruntime.OrtSession.SessionOptions
import ai.onnxruntime.OrtSession.SessionOptions.*
import ai.onnxruntime.TensorInfo.OnnxTensorType
import java.nio.ByteBuffer

/** ONNX's types in the order of its numbers; null: none that goes in and out as numbers here. */
private val TYPES =
    "- FLOAT UINT8 INT8 - INT16 INT32 INT64 - BOOL FLOAT16 DOUBLE - - - - BFLOAT16".split(" ")
        .map { if (it == "-") null else OnnxTensorType.valueOf("ONNX_TENSOR_ELEMENT_DATA_TYPE_$it") }

private val BAD_MODEL =
    setOf(ORT_INVALID_PROTOBUF, ORT_INVALID_GRAPH, ORT_INVALID_ARGUMENT, ORT_NO_SUCHFILE, ORT_NO_MODEL)

/** Numbers in host memory of the program's own, and as which type a tensor is made over them. */
class Numbers(val dtype: Int, val shape: LongArray, val bytes: ByteBuffer) {
    val type: OnnxJavaType = TYPES[dtype]?.let(OnnxJavaType::mapFromOnnxTensorType)
        ?: throw Fault("a tensor of ONNX's type $dtype: the runner in Kotlin takes and gives no such tensor")
}

/** One session of the plan's model, and what its last run gave and took. */
class Session(private val environment: OrtEnvironment, plan: Plan, profile: String?) : AutoCloseable {
    private val session: OrtSession
    val sessionNs: Long

    /** Of the last step, in the model's order; null is what is no tensor. */
    var results = listOf<Numbers?>()

    /** Bind, run and copy of the last step, in nanoseconds. */
    val times = LongArray(3)

    init {
        val model = plan.text(Role.MODEL)
        try {
            SessionOptions().use { options ->
                plan.entries(Role.OPTION).forEach { options.set(it.name, it.text) }
                profile?.let(options::enableProfiling)
                options.setSessionLogLevel(if (profile == null) ORT_LOGGING_LEVEL_ERROR else ORT_LOGGING_LEVEL_INFO)
                val begin = System.nanoTime()
                session = environment.createSession(model, options)
                sessionNs = System.nanoTime() - begin
            }
        } catch (error: OrtException) {
            // `Fail` is many things: of a model that cannot be read it says so.
            val unread = error.code == ORT_FAIL && "Load model from" in "${error.message}"
            throw if (unread || error.code in BAD_MODEL) Fault("$model: ${error.message}") else error
        }
    }

    /** Bind, run and copy to [results]. */
    fun step(feed: Map<String, Numbers>) {
        val start = System.nanoTime()
        val bound = feed.mapValues { (_, it) -> OnnxTensor.createTensor(environment, it.bytes, it.shape, it.type) }
        try {
            val ready = System.nanoTime()
            session.run(bound).use { given ->
                val ran = System.nanoTime()
                results = given.map { (_, value) -> (value as? OnnxTensor)?.let(::copy) }
                times[2] = System.nanoTime() - ran
                times[1] = ran - ready
                times[0] = ready - start
            }
        } finally {
            bound.values.forEach { it.close() }
        }
    }

    fun endProfile(): String = session.endProfiling()
    override fun close() = session.close()
}

private fun copy(tensor: OnnxTensor): Numbers {
    val dtype = TYPES.indexOf(tensor.info.onnxType)
    if (dtype < 0) throw Fault("an output is ${tensor.info.onnxType}: the runner in Kotlin gives no such tensor")
    // An empty tensor may have no memory to look at.
    val bytes = if (tensor.info.numElements == 0L) ByteBuffer.allocate(0) else tensor.byteBuffer
    return Numbers(dtype, tensor.info.shape, bytes)
}

private fun SessionOptions.set(name: String, text: String) = when (name) {
    "intra_op_num_threads" -> setIntraOpNumThreads(text.toInt())
    "inter_op_num_threads" -> setInterOpNumThreads(text.toInt())
    "execution_mode" -> setExecutionMode(ExecutionMode.valueOf(text.uppercase()))
    "graph_optimization_level" ->
        setOptimizationLevel(OptLevel.valueOf(text.replace("disabled", "no").uppercase() + "_OPT"))
    "enable_cpu_mem_arena" -> setCPUArenaAllocator(text == "1")
    "enable_mem_pattern" -> setMemoryPatternOptimization(text == "1")
    else -> addConfigEntry(name, text)
}
