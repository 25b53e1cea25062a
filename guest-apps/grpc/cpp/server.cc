// SPDX-License-Identifier: Apache-2.0
// grpc-cpp-server: the service sundial.Functions.
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "functions.grpc.pb.h"
#include "messages.h"
#include "programs.h"
#include "usage.h"

using sundial::Functions;
using Service = Functions::AsyncService;

namespace server
{

namespace
{

constexpr int WORKERS_MOST = 64;
constexpr long long DIE_CALL_MOST = 1000000;
constexpr int IDLE_US = 200 * 1000;

struct Settings {
    int port;
    int workers;
    bool bdp_probe;
    long long die_call; // 0: never
};

Settings read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);
    Settings settings;

    settings.port = static_cast<int>(options_integer(options, "port", PORT, 1, 65535));
    settings.workers =
        static_cast<int>(options_integer(options, "max_workers", 1, 1, WORKERS_MOST));
    settings.bdp_probe = options_boolean(options, "bdp_probe", false);
    settings.die_call = options_integer(options, "die_call", 0, 1, DIE_CALL_MOST);
    options_check_all_taken(options);
    options_close(options);
    return settings;
}

// Where the server is to be killed, it goes on in a child, and this process waits for SIGTERM: a
// service that ends is a machine's fault.
void outlive()
{
    const pid_t child = fork();
    sigset_t end;
    int number;

    if (child == 0)
        return;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigwait(&end, &number);
    kill(child, SIGTERM); // of one that has been killed there is still the number
    waitpid(child, nullptr, 0);
    _exit(EXIT_SUCCESS);
}

// Calls by function, of all workers, and the context switches of this process while it was called.
class Counters
{
  public:
    explicit Counters(const Settings &settings) : port(settings.port), die_call(settings.die_call)
    {
    }

    void count(enum function function)
    {
        // Put off with each call, so that nothing but work happens while calls are measured.
        static const struct itimerval idle = {{0, 0}, {0, IDLE_US}};
        std::lock_guard<std::mutex> hold(lock);

        setitimer(ITIMER_REAL, &idle, nullptr);
        if (function != last) {
            add_switches();
            last = function;
        }
        if (calls[function]++ == 0)
            order.push_back(function);
        if (++sum == die_call) {
            put();
            kill(getpid(), SIGKILL);
        }
    }

    void report()
    {
        std::lock_guard<std::mutex> hold(lock);

        put();
    }

  private:
    void add_switches()
    {
        const long now = context_switches();

        switches[last] += now - since;
        since = now;
    }

    void put()
    {
        json_t *line = samples_object("counters");
        json_t *by_function = json_object();
        json_t *switched = json_object();

        add_switches();
        for (enum function function : order) {
            json_object_set_new(by_function, function_names[function - 1],
                                json_integer(calls[function]));
            json_object_set_new(switched, function_names[function - 1],
                                json_integer(switches[function]));
        }
        json_object_update_new(
            line, json_pack("{si sI so si so}", "port", port, "calls", static_cast<json_int_t>(sum),
                            "by_function", by_function, "failed", 0, "context_switches", switched));
        samples_put(line);
    }

    const int port;
    const long long die_call;
    std::mutex lock;
    long long sum = 0;
    long long calls[FUNCTIONS + 1] = {};
    // What was before the first call is of no function.
    long switches[FUNCTIONS + 1] = {};
    long since = 0;
    enum function last = static_cast<enum function>(0);
    std::vector<enum function> order;
};

// What the library gives back from its queue: a call that has come, or one that is over.
class Event
{
  public:
    virtual ~Event() = default;
    virtual void happened(bool ok) = 0;
};

struct Serving {
    Service *service;
    grpc::ServerCompletionQueue *queue;
    Counters *counters;
};

// One call of a function: waits for it, answers it, and is gone.
template <class Request, class Reply> class Call : public Event
{
  public:
    using Method = void (Service::*)(grpc::ServerContext *, Request *,
                                     grpc::ServerAsyncResponseWriter<Reply> *,
                                     grpc::CompletionQueue *, grpc::ServerCompletionQueue *,
                                     void *);

    Call(const Serving &serving, enum function function, Method method)
        : serving(serving), function(function), method(method), writer(&context)
    {
        (serving.service->*method)(&context, &request, &writer, serving.queue, serving.queue,
                                   static_cast<Event *>(this));
    }

    void happened(bool ok) override
    {
        if (!ok || answered) {
            delete this;
            return;
        }
        new Call(serving, function, method);
        serving.counters->count(function);
        answered = true;
        writer.Finish(answer(request), grpc::Status::OK, static_cast<Event *>(this));
    }

  private:
    const Serving serving;
    const enum function function;
    const Method method;
    grpc::ServerContext context;
    Request request;
    grpc::ServerAsyncResponseWriter<Reply> writer;
    bool answered = false;
};

// The methods of the generated service are of a base class each.
template <class Base, class Request, class Reply>
void wait_for(const Serving &serving, enum function function,
              void (Base::*method)(grpc::ServerContext *, Request *,
                                   grpc::ServerAsyncResponseWriter<Reply> *,
                                   grpc::CompletionQueue *, grpc::ServerCompletionQueue *, void *))
{
    new Call<Request, Reply>(serving, function, method);
}

void wait_for_all(const Serving &serving)
{
    wait_for(serving, FUNCTION_VOID, &Service::RequestVoid);
    wait_for(serving, FUNCTION_BOOLEAN, &Service::RequestBoolean);
    wait_for(serving, FUNCTION_INT, &Service::RequestInt);
    wait_for(serving, FUNCTION_LONG, &Service::RequestLong);
    wait_for(serving, FUNCTION_STRING_32, &Service::RequestString32);
    wait_for(serving, FUNCTION_STRING_512, &Service::RequestString512);
    wait_for(serving, FUNCTION_STRING_1024, &Service::RequestString1024);
    wait_for(serving, FUNCTION_INT_ARRAY, &Service::RequestIntArray);
    wait_for(serving, FUNCTION_FLOAT_ARRAY, &Service::RequestFloatArray);
    wait_for(serving, FUNCTION_STRING_ARRAY, &Service::RequestStringArray);
    wait_for(serving, FUNCTION_PERSON, &Service::RequestPerson);
    wait_for(serving, FUNCTION_DISTANCE, &Service::RequestDistance);
}

void work(grpc::ServerCompletionQueue *queue)
{
    void *event;
    bool ok;

    while (queue->Next(&event, &ok))
        static_cast<Event *>(event)->happened(ok);
}

} // namespace

int run(int argc, char **argv)
{
    sigset_t waited;

    // From here these wait for this thread, in every one to come.
    sigemptyset(&waited);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGALRM);
    sigprocmask(SIG_BLOCK, &waited, nullptr);
    const Settings settings = read_settings(argc, argv);
    if (settings.die_call > 0)
        outlive();
    Counters counters(settings);
    Service service;
    grpc::ServerBuilder builder;
    int bound = 0;

    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, settings.bdp_probe);
    builder.AddListeningPort("0.0.0.0:" + std::to_string(settings.port),
                             grpc::InsecureServerCredentials(), &bound);
    builder.RegisterService(&service);
    auto queue = builder.AddCompletionQueue();
    auto server = builder.BuildAndStart();
    if (server == nullptr || bound == 0)
        samples_fail("port %d: cannot be bound", settings.port);
    wait_for_all({&service, queue.get(), &counters});
    std::vector<std::thread> workers;
    for (int i = 0; i < settings.workers; i++)
        workers.emplace_back(work, queue.get());
    puts("ready");
    fflush(stdout);
    for (int number = 0; number != SIGTERM;) {
        sigwait(&waited, &number);
        counters.report();
    }
    server->Shutdown(std::chrono::system_clock::now());
    queue->Shutdown();
    for (std::thread &worker : workers)
        worker.join();
    return EXIT_SUCCESS;
}

} // namespace server
