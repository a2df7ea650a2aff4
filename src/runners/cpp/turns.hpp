// Turns with other programs, each of which waits while another runs: docs/runner-contract.md.

#pragma once

#include <cstdint>
#include <string>

class Turns {
public:
    // Connects to who gives the turns, where any are to be taken. Raises Failure.
    Turns();

    explicit operator bool() const { return handle >= 0; }

    // Says 'r', ready, or 'd', done, and waits; returns the iterations of the next turn, 0: no
    // more. Raises Failure.
    std::int64_t next(char said) const;

private:
    int handle = -1;
    std::string peer;
};
