#include "turns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "result.h"

enum { KEY = 32 };

static char host[16];
static unsigned short port;

int turns_join(void)
{
    const char *given = getenv("TRANSECT_TURNS");
    char key[KEY + 1];
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (given == NULL)
        return NO_TURNS;
    if (sscanf(given, "%15[0-9.]:%hu:%32s", host, &port, key) != 3 || strlen(key) != KEY ||
        inet_pton(AF_INET, host, &address.sin_addr) != 1)
        fail(CAUSE_BAD_INPUT, "TRANSECT_TURNS: expected HOST:PORT:KEY");
    address.sin_port = htons(port);
    int turns = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (turns < 0 || connect(turns, (struct sockaddr *)&address, sizeof address) < 0 ||
        send(turns, key, KEY, MSG_NOSIGNAL) != KEY)
        fail(CAUSE_CRASH, "turns: %s:%hu: %s", host, port, strerror(errno));
    return turns;
}

int64_t turns_next(int turns, char said)
{
    int64_t count; /* little-endian, as the plan */
    if (send(turns, &said, 1, MSG_NOSIGNAL) != 1 ||
        recv(turns, &count, sizeof count, MSG_WAITALL) != sizeof count)
        fail(CAUSE_CRASH, "turns: %s:%hu ended the connection", host, port);
    return count;
}
