// What went wrong, and the exit code and word that docs/runner-contract.md has for it.

#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace transect {

enum class Cause {
    crash,
    missing_dependency,
    out_of_memory,
    bad_input,
    // A value that this runner cannot give or take: a case's verdict, otherwise bad input.
    unsupported,
    no_provider,
    diverged,
};

class Failure : public std::runtime_error {
public:
    Failure(Cause cause, const std::string& message)
        : std::runtime_error(message), cause_(cause) {}

    Cause cause() const noexcept { return cause_; }

private:
    Cause cause_;
};

class BadInput : public Failure {
public:
    explicit BadInput(const std::string& message) : Failure(Cause::bad_input, message) {}
};

class Unsupported : public Failure {
public:
    explicit Unsupported(const std::string& message) : Failure(Cause::unsupported, message) {}
};

// Any exception as a failure: ONNX Runtime's are told apart by their code.
Failure as_failure(const std::exception& error);

int exit_code(Cause cause) noexcept;

// The record's `cause`.
const char* cause_word(Cause cause) noexcept;

}  // namespace transect
