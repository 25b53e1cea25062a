// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "trace.h"

#include "blocks.h"
#include "member.h"
#include "points.h"
#include "qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- The file ---------------------------------------------------------------------------------

enum kind { ENTRY, EXIT, HALT };

static const struct {
    char magic[8];
    uint32_t version, stamp_bytes;
} HEADER = {{'S', 'U', 'N', 'T', 'R', 'A', 'C', 'E'}, 1, 40};

struct stamp {
    uint64_t ns;          // since zero
    uint64_t page_table;  // CR3
    uint64_t thread;      // base of FS
    uint64_t argument;    // RDI at an entry
    uint32_t point, kind; // line of the points' file; enum kind
};
_Static_assert(sizeof(struct stamp) == 40, "as the header says");

// From the first HLT of the run all is stamped. Where QEMU keeps its budget is known a few blocks
// after the guest has first woken, but after how many depends on the host.
static bool begun;

static const uint32_t NO_POINT = UINT32_MAX;

static struct points points;
static int file = -1;
static struct stamp buffer[4096];
static size_t buffered;
static bool closed;

static void write_all(const void *bytes, size_t length)
{
    for (const uint8_t *at = bytes; length;) {
        ssize_t written = write(file, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            broken("the trace cannot be written");
        at += written;
        length -= (size_t)written;
    }
}

static void flush(void)
{
    size_t bytes = buffered * sizeof *buffer;
    buffered = 0; // first: what cannot be written must not be tried again when leaving
    write_all(buffer, bytes);
}

static void put(struct stamp stamp)
{
    if (closed)
        return;
    if (buffered == sizeof buffer / sizeof *buffer)
        flush();
    buffer[buffered++] = stamp;
    count.stamps++;
}

void trace_close(void)
{
    if (file < 0 || closed)
        return;
    closed = true;
    flush();
}

// ---- Stamps -----------------------------------------------------------------------------------

// Registers as QEMU numbers them for GDB.
enum { RDI = 5, FS_BASE = 24, CR3 = 29 };

static uint64_t value_of(int number)
{
    static GByteArray *bytes;
    if (!bytes)
        bytes = qemu.byte_array_new();
    qemu.byte_array_set_size(bytes, 0);
    qemu.read_register(qemu_current_cpu(), bytes, number);
    uint64_t value = 0;
    memcpy(&value, bytes->data, bytes->len < sizeof value ? bytes->len : sizeof value);
    return value;
}

// The present block is off the budget already: its end is the time.
static int64_t end_of_block_ns(void)
{
    return qemu_accounted_ns() + blocks_unaccounted() * (int64_t)options.instruction_ns;
}

// Since zero.
static uint64_t now_ns(uint32_t instructions_left)
{
    int64_t clock = end_of_block_ns() - (int64_t)(instructions_left * options.instruction_ns);
    return (uint64_t)(clock - zero_ns);
}

// One instruction of one translated block.
struct hook {
    uint32_t point, kind;
    uint32_t place, length; // in its block
    // QEMU may have taken the last instruction off again, since it crosses the end of the page.
    bool doubtful;
};

enum { PAGE = 4096, INSTRUCTION_MOST = 15 };

// Instructions of the block from this one on, with it. `code`: of the host, in the block.
static uint32_t left_from(const struct hook *hook, uintptr_t code)
{
    int length = (int)hook->length;
    if (hook->doubtful)
        length = qemu_block_instructions(code, length);
    if (length <= (int)hook->place)
        broken(
            "how long a block is that ends with its page was not found, so nothing can be traced");
    return (uint32_t)length - hook->place;
}

static void hit(unsigned vcpu, void *data)
{
    (void)vcpu;
    const struct hook *hook = data;
    if (!begun)
        return;
    put((struct stamp){
        .ns = now_ns(left_from(hook, (uintptr_t)__builtin_return_address(0))),
        // These two are in memory inside a block too, unless it changes them itself.
        .page_table = value_of(CR3),
        .thread = value_of(FS_BASE),
        // A function's entry is the first of its block: all registers are in memory.
        .argument = hook->kind == ENTRY ? value_of(RDI) : 0,
        .point = hook->point,
        .kind = hook->kind,
    });
}

static void stamp(const struct qemu_plugin_tb *tb, size_t place, const struct point *point,
                  enum kind kind)
{
    size_t length = qemu.plugin_tb_n_insns(tb);
    struct qemu_plugin_insn *instruction = qemu.plugin_tb_get_insn(tb, place);
    uint64_t first = qemu.plugin_insn_vaddr(qemu.plugin_tb_get_insn(tb, 0));
    uint64_t last = qemu.plugin_insn_vaddr(qemu.plugin_tb_get_insn(tb, length - 1));
    // Translated blocks come and go and QEMU does not say when, so a hook stays.
    struct hook *hook = malloc(sizeof *hook);
    if (hook) {
        *hook = (struct hook){
            .point = point->number,
            .kind = kind,
            .place = (uint32_t)place,
            .length = (uint32_t)length,
            .doubtful = length > 1 && first / PAGE != (last + INSTRUCTION_MOST - 1) / PAGE,
        };
        qemu.plugin_register_vcpu_insn_exec_cb(instruction, hit, QEMU_PLUGIN_CB_NO_REGS, hook);
    } else
        broken("no memory for the trace");
}

static bool is_return(const struct qemu_plugin_insn *instruction)
{
    size_t size = qemu.plugin_insn_size(instruction);
    uint8_t bytes[2] = {0};
    if (size > sizeof bytes)
        return false;
    qemu_first_bytes(instruction, bytes, size);
    return (size == 1 && bytes[0] == 0xc3) || (size == 2 && bytes[0] == 0xf3 && bytes[1] == 0xc3);
}

// Whether the code is the point's own: other programs have other functions at its address. What
// cannot be read, since a part of it is not in memory yet, is believed.
static bool is_present(const struct point *point)
{
    if (!point->has_crc)
        return true;
    size_t length = (size_t)(point->end - point->address);
    uint8_t *code = malloc(length);
    if (!code)
        broken("no memory for the trace");
    bool unread = qemu.read_memory(qemu_current_cpu(), point->address, code, length, false) != 0;
    bool same = unread || points_crc(code, length) == point->crc;
    free(code);
    return same;
}

static void stamp_point(struct qemu_plugin_tb *tb, const struct point *point, size_t length)
{
    struct qemu_plugin_insn *last = qemu.plugin_tb_get_insn(tb, length - 1);
    uint64_t end = qemu.plugin_insn_vaddr(last);
    for (size_t i = 0; point->entry && i < length; i++) {
        struct qemu_plugin_insn *instruction = qemu.plugin_tb_get_insn(tb, i);
        if (qemu.plugin_insn_vaddr(instruction) == point->address && is_present(point))
            stamp(tb, i, point, ENTRY);
    }
    // A return is the last of its block.
    if (point->exits && end >= point->address && end < point->end && is_return(last) &&
        is_present(point))
        stamp(tb, length - 1, point, EXIT);
}

void trace_block(struct qemu_plugin_tb *tb)
{
    if (file < 0)
        return;
    size_t length = qemu.plugin_tb_n_insns(tb);
    uint64_t first = qemu.plugin_insn_vaddr(qemu.plugin_tb_get_insn(tb, 0));
    struct qemu_plugin_insn *last = qemu.plugin_tb_get_insn(tb, length - 1);
    uint64_t end = qemu.plugin_insn_vaddr(last);
    const struct point *point = points_from(&points, first);
    const struct point *beyond = points.all + points.count;
    for (; point && point < beyond && point->address <= end; point++)
        if (point->end > first)
            stamp_point(tb, point, length);
}

// ---- HLT --------------------------------------------------------------------------------------

static int64_t expected_ns;

void trace_before_halt(void)
{
    if (file < 0)
        return;
    if (!blocks_watched())
        broken("where QEMU counts its instructions was not found, so nothing can be traced");
    begun = true;
    put((struct stamp){.ns = now_ns(1), .point = NO_POINT, .kind = HALT});
    expected_ns = end_of_block_ns();
}

// A stamp's time is computed from QEMU's numbers without its help. Here QEMU has done the same.
void trace_after_halt(void)
{
    if (file < 0)
        return;
    if (qemu_accounted_ns() != expected_ns)
        broken("the time of a stamp is not QEMU's");
    count.stamps_checked++;
}

// ---- Opening ----------------------------------------------------------------------------------

static const char *read_points(const char *path)
{
    static char complaint[160];
    FILE *from = fopen(path, "r");
    if (!from)
        return "points= cannot be read";
    enum { BYTES_MOST = POINTS_MOST * 64 };
    char *text = calloc(1, BYTES_MOST + 1);
    size_t length = text ? fread(text, 1, BYTES_MOST, from) : 0;
    bool whole = text && !ferror(from) && feof(from) && strlen(text) == length;
    fclose(from);
    unsigned line = whole ? points_parse(&points, text) : 0;
    free(text);
    if (!whole)
        return "points= is too long, or no text";
    if (!line)
        return NULL;
    snprintf(complaint, sizeof complaint,
             "points=, line %u: not \"ADDRESS SIZE entry|exit|both [CRC]\", or inside another "
             "function",
             line);
    return complaint;
}

const char *trace_open(const char *path, const char *from)
{
    if (!qemu.tcg_qemu_tb_exec || !qemu.read_register || !qemu.read_memory)
        return "this QEMU does not show what a trace needs (tcg_qemu_tb_exec, "
               "x86_cpu_gdb_read_register, cpu_memory_rw_debug)";
    const char *wrong = read_points(from);
    if (wrong)
        return wrong;
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        return "trace= cannot be written";
    write_all(&HEADER, sizeof HEADER);
    return NULL;
}
