/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "runner/base64.h"
#include "samples.h"
#include "syscalls.h"

enum {
    WORDS = 256,
    PIECE = 3 * 1024, /* of an output in one record */
    CANNOT_START = 127,
    PATH_MOST = 512,
    KEPT_MOST = 1 << 20, /* bytes of an output that are recorded by default */
    ENOUGH_MS = 1000,
    STARTING_PRIORITY = 1, /* of a process until it is its program: this one waits for it */
    OWN_PRIORITY = 2,
};

static bool punctual;

static const uint64_t FNV_BASIS = 0xcbf29ce484222325, FNV_PRIME = 0x100000001b3;
static const char BUSYBOX[] = "/bin/busybox";
static const char PATH[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

long long command_number(const json_t *object, const char *name, long long absent)
{
    const json_t *value = json_object_get(object, name);

    return json_is_integer(value) ? json_integer_value(value) : absent;
}

static const char *text_of(const struct program *program, const char *name)
{
    return json_string_value(json_object_get(program->options, name));
}

void pattern_take(regex_t *pattern, const char *text)
{
    char words[256];
    int error = regcomp(pattern, text, REG_EXTENDED | REG_NOSUB);

    if (error == 0)
        return;
    regerror(error, pattern, words, sizeof(words));
    samples_refuse("line %s: %s", text, words);
}

bool pattern_matches(const regex_t *pattern, const char *line)
{
    return regexec(pattern, line, 0, NULL, 0) == 0;
}

static const char *ready_line(const struct program *program)
{
    return json_string_value(json_object_get(json_object_get(program->options, "ready"), "line"));
}

void program_take(struct program *program, const json_t *value)
{
    const char *role = json_string_value(json_object_get(value, "role"));

    *program = (struct program){.options = value, .outputs = {{.file = -1}, {.file = -1}}};
    for (int i = 0; i < 2; i++) {
        program->outputs[i].name = i == 0 ? "stdout" : "stderr";
        program->outputs[i].sum = FNV_BASIS;
    }
    program->name = text_of(program, "name");
    program->id = (unsigned)command_number(value, "id", 0) % INSTANCES_MOST;
    program->service = role != NULL && strcmp(role, "service") == 0;
    program->lives = json_array();
    if (program->name == NULL || json_array_size(json_object_get(value, "argv")) == 0)
        samples_refuse("option programs: each must have name and argv");
    if (ready_line(program) != NULL)
        pattern_take(&program->ready_line, ready_line(program));
}

static void words_of(const json_t *array, char *words[WORDS + 1])
{
    size_t count = json_array_size(array) < WORDS ? json_array_size(array) : WORDS;

    for (size_t i = 0; i < count; i++)
        words[i] = (char *)json_string_value(json_array_get(array, i));
    words[count] = NULL;
}

/* The shell and the programs of busybox have no files of their own in an image that starts fast. */
static void execute(char **words)
{
    execvp(*words, words);
    if (errno == ENOENT && strchr(*words, '/') == NULL) {
        execv(BUSYBOX, words);
        errno = ENOENT;
    }
}

const char *program_word(const struct program *program)
{
    return json_string_value(json_array_get(json_object_get(program->options, "argv"), 0));
}

static bool is_in(const char *folder, size_t length, const char *name)
{
    char path[PATH_MOST];

    snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, name);
    return access(path, X_OK) == 0;
}

static bool busybox_has(const char *name)
{
    char line[PATH_MOST];
    FILE *list = popen("/bin/busybox --list", "re");
    bool found = false;

    while (list != NULL && fgets(line, sizeof(line), list) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = found || strcmp(line, name) == 0;
    }
    return list == NULL || pclose(list) != 0 || found;
}

bool program_is_unknown(const struct program *program)
{
    const json_t *own = json_object_get(json_object_get(program->options, "env"), "PATH");
    const char *path = json_is_string(own) ? json_string_value(own) : getenv("PATH");
    const char *name = program_word(program);

    /* busybox ends like this where it is called by a name that it does not have. */
    if (!WIFEXITED(program->wait_status) || WEXITSTATUS(program->wait_status) != CANNOT_START ||
        strchr(name, '/') != NULL)
        return false;
    for (path = path == NULL ? PATH : path; *path != '\0'; path += strspn(path, ":")) {
        size_t length = strcspn(path, ":");

        if (is_in(path, length, name))
            return false;
        path += length;
    }
    return !busybox_has(name);
}

static void make_folders(const char *path)
{
    char *copy = strdup(path);

    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(copy, 0755);
        *slash = '/';
    }
    mkdir(copy, 0755);
    free(copy);
}

static bool take_user(const struct program *program)
{
    long long user = command_number(program->options, "user", -1);

    if (user < 0)
        return true;
    return setgroups(0, NULL) == 0 && setgid((gid_t)user) == 0 && setuid((uid_t)user) == 0;
}

static bool take_environment(const struct program *program)
{
    const char *directory = text_of(program, "directory");
    const char *name;
    json_t *value;

    for (const char **own =
             (const char *[]){"SUNDIAL_APP", "SUNDIAL_STEP", "SUNDIAL_ZERO_NS", NULL};
         *own != NULL; own++)
        unsetenv(*own);
    setenv("PATH", PATH, 0);
    json_object_foreach (json_object_get(program->options, "env"), name, value)
        setenv(name, json_string_value(value), 1);
    if (directory == NULL)
        return true;
    make_folders(directory);
    return chdir(directory) == 0;
}

void program_never_delays(void)
{
    punctual = sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){OWN_PRIORITY}) == 0;
}

/* In the child: becomes the program, or writes to `failure` why it cannot. */
static _Noreturn void become(const struct program *program, const json_t *array, int input, int out,
                             int err, int failure)
{
    char *words[WORDS + 1];
    sigset_t none;
    int error;

    if (punctual)
        sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){STARTING_PRIORITY});
    amounts_leave_child();
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    dup2(input, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    words_of(array, words);
    /* The failure's descriptor goes where nothing else is closed. */
    failure = dup2(failure, STDERR_FILENO + 1);
    fcntl(failure, F_SETFD, FD_CLOEXEC);
    close_descriptors_from(failure + 1);
    if (take_environment(program) && take_user(program))
        execute(words);
    error = errno;
    if (write(failure, &error, sizeof(error)) < 0)
        _exit(CANNOT_START);
    _exit(CANNOT_START);
}

static int input_of(const struct program *program)
{
    const char *text = text_of(program, "input");
    int file;

    if (text == NULL)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    file = memfd_create("input", MFD_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        samples_fail("program %s: its input: %s", program->name, strerror(errno));
    lseek(file, 0, SEEK_SET);
    return file;
}

/* The process, or -1. `out`, `err` stay open here. */
static pid_t launch(const struct program *program, const json_t *array, int input, int out, int err)
{
    int failure[2];
    int error = 0;
    pid_t pid;

    if (pipe2(failure, O_CLOEXEC) != 0)
        return -1;
    pid = fork();
    if (pid == 0)
        become(program, array, input, out, err, failure[1]);
    close(failure[1]);
    if (pid > 0 && read(failure[0], &error, sizeof(error)) > 0) {
        waitpid(pid, NULL, 0);
        pid = -1;
    }
    close(failure[0]);
    if (pid > 0 && punctual)
        sched_setscheduler(pid, SCHED_OTHER, &(struct sched_param){0});
    if (error != 0)
        errno = error;
    return pid;
}

/* When it began, and how it ended. */
static void put_life(const struct program *program, json_t *object)
{
    bool ended = program->state == PROGRAM_ENDED;
    bool signalled = ended && WIFSIGNALED(program->wait_status);

    json_object_set_new(object, "start", json_integer((json_int_t)program->start_ns));
    json_object_set_new(object, "ready",
                        program->ready_ns == 0 ? json_null()
                                               : json_integer((json_int_t)program->ready_ns));
    json_object_set_new(object, "end", json_integer((json_int_t)program->end_ns));
    json_object_set_new(object, "status",
                        signalled ? json_null() : json_integer(WEXITSTATUS(program->wait_status)));
    json_object_set_new(object, "signal",
                        signalled ? json_integer(WTERMSIG(program->wait_status)) : json_null());
}

/* Back to before its start; what it wrote stays. */
static void forget_life(struct program *program)
{
    json_t *life = json_object();
    enum state state = program->state;

    program->state = PROGRAM_ENDED;
    put_life(program, life);
    program->state = state;
    json_array_append_new(program->lives, life);
    program->ready_ns = program->end_ns = program->kill_ns = 0;
    program->line_seen = program->hit = program->paused = program->background = false;
    for (int i = 0; i < 2; i++) {
        struct output *output = &program->outputs[i];

        while (output->file >= 0 && program_read(program, output))
            continue;
        if (output->file >= 0)
            close(output->file);
        output->tail_length = output->line_length = 0;
    }
}

bool program_start(struct program *program, uint64_t now)
{
    int ends[2][2];
    int input = input_of(program);
    int error;

    if (program->start_ns != 0)
        forget_life(program);
    for (int i = 0; i < 2; i++) {
        if (pipe2(ends[i], O_CLOEXEC) != 0)
            samples_fail("program %s: %s", program->name, strerror(errno));
        fcntl(ends[i][0], F_SETFL, O_NONBLOCK);
        program->outputs[i].file = ends[i][0];
    }
    program->start_ns = now;
    program->pid = launch(program, json_object_get(program->options, "argv"), input, ends[0][1],
                          ends[1][1]);
    error = errno;
    close(input);
    close(ends[0][1]);
    close(ends[1][1]);
    errno = error;
    program->state = program->service ? PROGRAM_STARTS : PROGRAM_RUNS;
    program->deadline_ns = now +
                           (uint64_t)command_number(program->options, "timeout_ms", 0) * NS_PER_MS;
    return program->pid > 0;
}

static void end_line(struct program *program, struct output *output)
{
    output->line[output->line_length] = '\0';
    output->line_length = 0;
    if (program->service && ready_line(program) != NULL && !program->line_seen)
        program->line_seen = pattern_matches(&program->ready_line, output->line);
    events_line(program, output->line, clock_now_ns());
}

/* Cuts what was read into lines. */
static void take_lines(struct program *program, struct output *output, const char *piece,
                       size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (piece[i] == '\n')
            end_line(program, output);
        else if (output->line_length < LINE_MOST)
            output->line[output->line_length++] = piece[i] == '\0' ? '?' : piece[i];
    }
}

static void keep_tail(struct output *output, const char *piece, size_t length)
{
    size_t gone;

    if (length > TAIL) {
        piece += length - TAIL;
        length = TAIL;
    }
    gone = output->tail_length + length > TAIL ? output->tail_length + length - TAIL : 0;
    memmove(output->tail, output->tail + gone, output->tail_length - gone);
    output->tail_length -= gone;
    memcpy(output->tail + output->tail_length, piece, length);
    output->tail_length += length;
}

static void record(const struct program *program, struct output *output, const char *piece,
                   size_t length)
{
    char text[BASE64_LENGTH(PIECE)];
    json_t *line = samples_object("output");

    for (size_t i = 0; i < length; i++)
        output->sum = (output->sum ^ (unsigned char)piece[i]) * FNV_PRIME;
    output->kept += length;
    json_object_set_new(line, "name", json_string(program->name));
    json_object_set_new(line, "stream", json_string(output->name));
    json_object_set_new(line, "at", json_integer((json_int_t)clock_now_ns()));
    json_object_set_new(line, "data", json_stringn(text, base64_encode(piece, length, text)));
    samples_put(line);
}

bool program_read(struct program *program, struct output *output)
{
    static char piece[PIECE];
    uint64_t most = (uint64_t)command_number(program->options, "keep", KEPT_MOST);
    ssize_t got = read(output->file, piece, sizeof(piece));

    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            close(output->file);
            output->file = -1;
            if (output->line_length > 0)
                end_line(program, output);
        }
        return false;
    }
    output->bytes += (uint64_t)got;
    keep_tail(output, piece, (size_t)got);
    if (output->kept < most) {
        uint64_t room = most - output->kept;

        record(program, output, piece, room < (uint64_t)got ? room : (size_t)got);
    }
    take_lines(program, output, piece, (size_t)got);
    return true;
}

void program_signal(const struct program *program, int number)
{
    if (program->pid > 0)
        kill(-program->pid, number);
}

void program_end(struct program *program, uint64_t now)
{
    const json_t *stop = json_object_get(program->options, "stop");

    program_signal(program, (int)command_number(stop, "signal", SIGTERM));
    if (program->paused)
        program_signal(program, SIGCONT);
    program->kill_ns = now + (uint64_t)command_number(stop, "grace_ms", ENOUGH_MS) * NS_PER_MS;
}

void program_kill(struct program *program)
{
    program_signal(program, SIGKILL);
}

bool program_reap(struct program *program, pid_t pid, int wait_status, uint64_t now)
{
    if (program->check == pid) {
        program->check = 0;
        program->line_seen = wait_status == 0;
        return true;
    }
    if (program->pid != pid)
        return false;
    program->wait_status = wait_status;
    program->end_ns = now;
    program->state = PROGRAM_ENDED;
    return true;
}

static json_t *output_object(const struct output *output)
{
    char sum[17];

    for (int i = 15; i >= 0; i--)
        sum[15 - i] = "0123456789abcdef"[output->sum >> 4 * i & 15];
    sum[16] = '\0';
    return json_pack("{sI sI ss}", "bytes", (json_int_t)output->bytes, "kept",
                     (json_int_t)output->kept, "fnv1a", sum);
}

void program_report(const struct program *program)
{
    json_t *line = samples_object("program");

    json_object_set_new(line, "name", json_string(program->name));
    json_object_set_new(line, "role", json_string(program->service ? "service" : "job"));
    put_life(program, line);
    json_object_set_new(line, "timed_out", json_boolean(program->timed_out));
    json_object_set_new(line, "stopped", json_boolean(program->stopped));
    json_object_set_new(line, "stdout", output_object(&program->outputs[0]));
    json_object_set_new(line, "stderr", output_object(&program->outputs[1]));
    if (program->background)
        json_object_set_new(line, "background", json_true());
    if (json_array_size(program->lives) > 0)
        json_object_set(line, "before", program->lives);
    samples_put(line);
}

/* Of the rule `command`: a process whose output goes nowhere. */
pid_t program_check(const struct program *program)
{
    const json_t *array = json_object_get(json_object_get(program->options, "ready"), "command");
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = launch(program, array, nothing, nothing, nothing);

    close(nothing);
    return pid;
}
