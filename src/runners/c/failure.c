#include "failure.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_character(const unsigned char *text, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (left == 0)
        return 0;
    unsigned char first = text[0];
    if (first < 0x80)
        return 1;
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length > left)
        return 0;
    uint32_t point = first & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        point = point << 6 | (text[i] & 0x3F);
    }
    bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    return point < least[length] || point > 0x10FFFF || surrogate ? 0 : length;
}

bool fail(struct failure *failure, enum cause cause, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    failure->cause = cause;
    vsnprintf(failure->message, sizeof failure->message, format, arguments);
    va_end(arguments);
    /* A path may hold any bytes, and a long message may be cut within a character. */
    size_t length = strlen(failure->message);
    for (size_t i = 0; i < length;) {
        size_t step = utf8_character((unsigned char *)failure->message + i, length - i);
        if (step == 0)
            failure->message[i] = '?';
        i += step == 0 ? 1 : step;
    }
    return false;
}

int exit_code(enum cause cause)
{
    switch (cause) {
    case CAUSE_NONE:
        return 0;
    case CAUSE_BAD_INPUT:
    case CAUSE_UNSUPPORTED:
        return 2;
    case CAUSE_NO_PROVIDER:
        return 3;
    default:
        return 1;
    }
}

const char *cause_word(enum cause cause)
{
    switch (cause) {
    case CAUSE_MISSING_DEPENDENCY:
        return "missing-dependency";
    case CAUSE_OUT_OF_MEMORY:
        return "out-of-memory";
    case CAUSE_BAD_INPUT:
    case CAUSE_UNSUPPORTED:
        return "bad-input";
    case CAUSE_DIVERGED:
        return "diverged";
    default:
        return "crash";
    }
}

void *reserve(size_t count, size_t size, struct failure *failure)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for %zu entries of %zu bytes", count, size);
    return memory;
}
