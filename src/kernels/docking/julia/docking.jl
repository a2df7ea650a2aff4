# The docking kernel in Julia: threads of its own, loops that become vectors; the contract of docs/docking.md.
# Needs Julia 1.9 or later and no package. Threads: julia --threads N.

const MAGIC = b"TDECK 1\n"
const ROW = 8
const STERIC = 76.0f0

struct Deck
    atoms::Int
    others::Int
    kinds::Int
    count::Int
    ligand::Matrix{Float32}  # atoms x 3: columns lie together
    ligand_kinds::Vector{Int32}
    protein::Matrix{Float32}
    protein_kinds::Vector{Int32}
    table::Array{Float32,3}  # ROW x kinds of the protein x kinds of the ligand
    poses::Matrix{Float32}   # count x 6
end

function refuse(text)
    println(stderr, "error: ", text)
    exit(2)
end

function read_deck(path)
    isfile(path) || refuse("$path cannot be opened")
    open(path) do file
        read(file, length(MAGIC)) == MAGIC ||
            refuse("$path is no prepared deck: expected it to begin with 'TDECK 1'")
        try
            counts = read!(file, Vector{Int32}(undef, 4))
            all(>(0), counts) || refuse("$path: expected four counts from 1 on, found $counts")
            atoms, others, kinds, count = Int.(counts)
            deck = Deck(atoms, others, kinds, count,
                read!(file, Matrix{Float32}(undef, atoms, 3)), read!(file, Vector{Int32}(undef, atoms)),
                read!(file, Matrix{Float32}(undef, others, 3)), read!(file, Vector{Int32}(undef, others)),
                read!(file, Array{Float32}(undef, ROW, kinds, kinds)),
                read!(file, Matrix{Float32}(undef, count, 6)))
            eof(file) || refuse("$path goes on after its last pose")
            all(kind -> 0 <= kind < kinds, [deck.ligand_kinds; deck.protein_kinds]) ||
                refuse("$path: an atom of a kind that is none of $kinds")
            return deck
        catch error
            error isa EOFError || rethrow()
            refuse("$path ends early")
        end
    end
end

# Poses `first` to `first + P - 1`; those past the last pose repeat it.
function item!(energies, deck, ::Val{P}, first) where {P}
    turns = Matrix{Float32}(undef, P, 9)
    shifts = Matrix{Float32}(undef, P, 3)
    @inbounds for i in 1:P
        pose = min(first + i - 1, deck.count)
        (sx, cx), (sy, cy), (sz, cz) = sincos.((deck.poses[pose, 1], deck.poses[pose, 2], deck.poses[pose, 3]))
        matrix = (cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz,
            cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, -sy, sx * cy, cx * cy)
        for k in 1:9
            turns[i, k] = matrix[k]
        end
        for axis in 1:3
            shifts[i, axis] = deck.poses[pose, 3+axis]
        end
    end
    x, y, z = Vector{Float32}(undef, P), Vector{Float32}(undef, P), Vector{Float32}(undef, P)
    sums = zeros(Float32, P)
    for atom in 1:deck.atoms
        @inbounds u, v, w = deck.ligand[atom, 1], deck.ligand[atom, 2], deck.ligand[atom, 3]
        @inbounds left = deck.ligand_kinds[atom] + 1
        @inbounds @simd ivdep for i in 1:P
            x[i] = shifts[i, 1] + turns[i, 1] * u + turns[i, 2] * v + turns[i, 3] * w
            y[i] = shifts[i, 2] + turns[i, 4] * u + turns[i, 5] * v + turns[i, 6] * w
            z[i] = shifts[i, 3] + turns[i, 7] * u + turns[i, 8] * v + turns[i, 9] * w
        end
        for other in 1:deck.others
            @inbounds begin
                px, py, pz = deck.protein[other, 1], deck.protein[other, 2], deck.protein[other, 3]
                right = deck.protein_kinds[other] + 1
                c0, c1, c2, c3 = deck.table[1, right, left], deck.table[2, right, left],
                deck.table[3, right, left], deck.table[4, right, left]
                c4, c5, c6 = deck.table[5, right, left], deck.table[6, right, left], deck.table[7, right, left]
            end
            @fastmath @inbounds @simd ivdep for i in 1:P
                dx, dy, dz = x[i] - px, y[i] - py, z[i] - pz
                d = sqrt(dx * dx + dy * dy + dz * dz)
                sums[i] += STERIC * max(0.0f0, 1.0f0 - d * c0) +
                           c1 * min(1.0f0, max(0.0f0, c2 - d * c3)) +
                           c4 * min(1.0f0, max(0.0f0, c5 - d * c6))
            end
        end
    end
    @inbounds for i in 1:min(P, deck.count - first + 1)
        energies[first+i-1] = 0.5f0 * sums[i]
    end
end

function run!(energies, deck, per_item::Val{P}, dynamic) where {P}
    items = cld(deck.count, P)
    if dynamic
        Threads.@threads :dynamic for i in 1:items
            item!(energies, deck, per_item, (i - 1) * P + 1)
        end
    else
        Threads.@threads :static for i in 1:items
            item!(energies, deck, per_item, (i - 1) * P + 1)
        end
    end
end

# How many runs come next. By turns, where no number was given: whoever gives them says it, 0 at the end.
function next_runs(iterations, done)
    iterations > 0 && return done == 0 ? iterations : 0
    println("turn")
    flush(stdout)
    count = tryparse(Int, readline())
    count === nothing ? 0 : count
end

function main(words)
    given = Dict("--schedule" => "static", "--threads" => "1", "--ppwi" => "64", "--iterations" => "8",
        "--warm-ups" => "2", "--deck" => "", "--energies" => "")
    iseven(length(words)) || refuse("$(last(words)): expected a value")
    for i in 1:2:length(words)
        haskey(given, words[i]) || refuse("$(words[i]): no such option")
        given[words[i]] = words[i+1]
    end
    number(name, least) = begin
        value = tryparse(Int, given[name])
        value === nothing || value < least ?
        refuse("$name: expected a whole number from $least on, found '$(given[name])'") : value
    end
    per_item, iterations, warm_ups = number("--ppwi", 1), number("--iterations", 0), number("--warm-ups", 0)
    per_item in (1, 4, 8, 16, 32, 64, 128, 256) ||
        refuse("--ppwi: expected 1, 4, 8, 16, 32, 64, 128 or 256, found $per_item")
    given["--schedule"] in ("static", "dynamic") ||
        refuse("--schedule: expected static or dynamic, found '$(given["--schedule"])'")
    Threads.nthreads() == number("--threads", 1) ||
        refuse("--threads: Julia has $(Threads.nthreads()) threads, $(given["--threads"]) were asked for")
    deck = read_deck(given["--deck"])
    println("fact kernel Julia, its own threads")
    println("fact compiled_by Julia $VERSION")
    println("fact cpus_of_threads not pinned")
    energies = Vector{Float32}(undef, deck.count)
    timed_run() = begin
        # What a run leaves out must not be what the run before it left.
        fill!(energies, NaN32)
        start = time_ns()
        run!(energies, deck, Val(per_item), given["--schedule"] == "dynamic")
        (time_ns() - start) / 1e9
    end
    for i in 0:warm_ups-1
        println("warm-up $i $(timed_run())")
    end
    done = 0
    while (left = next_runs(iterations, done)) > 0
        for number in done:done+left-1
            println("time $number $(timed_run())")
        end
        done += left
    end
    write(given["--energies"], energies)
end

main(ARGS)
