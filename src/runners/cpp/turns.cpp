#include "turns.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "result.hpp"

namespace {

constexpr std::size_t key_size = 32;

}  // namespace

Turns::Turns() {
    const char* given = std::getenv("TRANSECT_TURNS");
    if (!given) return;
    char host[16], key[key_size + 1];
    unsigned short port;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (std::sscanf(given, "%15[0-9.]:%hu:%32s", host, &port, key) != 3 ||
        std::strlen(key) != key_size || inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        throw Failure(Cause::bad_input, "TRANSECT_TURNS: expected HOST:PORT:KEY");
    }
    address.sin_port = htons(port);
    peer = std::string(host) + ":" + std::to_string(port);
    handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (handle < 0 || connect(handle, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 ||
        send(handle, key, key_size, MSG_NOSIGNAL) != key_size) {
        throw Failure(Cause::crash, "turns: " + peer + ": " + std::strerror(errno));
    }
}

std::int64_t Turns::next(char said) const {
    std::int64_t count;  // little-endian, as the plan
    if (send(handle, &said, 1, MSG_NOSIGNAL) != 1 ||
        recv(handle, &count, sizeof count, MSG_WAITALL) != sizeof count) {
        throw Failure(Cause::crash, "turns: " + peer + " ended the connection");
    }
    return count;
}
