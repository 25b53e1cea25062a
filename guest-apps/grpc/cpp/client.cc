// SPDX-License-Identifier: Apache-2.0
// grpc-cpp-client: calls functions one after another over one channel, each a batch.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "connection.h"
#include "functions.grpc.pb.h"
#include "messages.h"
#include "programs.h"
#include "usage.h"

using grpc::StatusCode;
using sundial::Functions;

namespace client
{

namespace
{

enum { CALLS_MOST = 1000000, WARMUP_MOST = 10000, SERIES_MOST = 999, TIMEOUT_MOST_MS = 3600000 };
constexpr int TIMEOUT_MS = 25000;
constexpr StatusCode LATE = StatusCode::DEADLINE_EXCEEDED;
// A reply came, with another value.
constexpr StatusCode WRONG = StatusCode::DATA_LOSS;

struct Settings {
    std::string server;
    int port;
    std::vector<enum function> functions;
    size_t calls, warmup;
    int series;
    bool bdp_probe;
    std::chrono::milliseconds timeout;
};

Settings read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);
    Settings settings;
    size_t count;

    settings.server = options_text(options, "server", nullptr);
    settings.port = static_cast<int>(options_integer(options, "port", PORT, 1, 65535));
    int *words = options_word_list(options, "functions", function_names, &count);
    for (size_t i = 0; i < count; i++)
        settings.functions.push_back(static_cast<enum function>(words[i] + 1));
    free(words);
    for (int i = FUNCTION_VOID; count == 0 && i <= FUNCTIONS; i++)
        settings.functions.push_back(static_cast<enum function>(i));
    settings.calls = static_cast<size_t>(options_integer(options, "calls", 1, 1, CALLS_MOST));
    settings.warmup = static_cast<size_t>(options_integer(options, "warmup", 0, 0, WARMUP_MOST));
    settings.series = static_cast<int>(options_integer(options, "series", 0, 0, SERIES_MOST));
    settings.bdp_probe = options_boolean(options, "bdp_probe", false);
    settings.timeout = std::chrono::milliseconds(
        options_integer(options, "total_timeout_ms", TIMEOUT_MS, 1, TIMEOUT_MOST_MS));
    options_check_all_taken(options);
    options_close(options);
    return settings;
}

// gRPC's names of a status, by its number.
void status_text(const struct call_record *record, char *text, size_t size)
{
    static const char *const names[] = {"OK",
                                        "CANCELLED",
                                        "UNKNOWN",
                                        "INVALID_ARGUMENT",
                                        "DEADLINE_EXCEEDED",
                                        "NOT_FOUND",
                                        "ALREADY_EXISTS",
                                        "PERMISSION_DENIED",
                                        "RESOURCE_EXHAUSTED",
                                        "FAILED_PRECONDITION",
                                        "ABORTED",
                                        "OUT_OF_RANGE",
                                        "UNIMPLEMENTED",
                                        "INTERNAL",
                                        "UNAVAILABLE",
                                        "DATA_LOSS",
                                        "UNAUTHENTICATED"};

    snprintf(text, size, "%s", names[record->failure]);
}

// Calls over one channel, of which the stream numbers follow: 1, 3, 5 and so on.
class Caller
{
  public:
    explicit Caller(const Settings &settings) : timeout(settings.timeout), warmup(settings.warmup)
    {
        grpc::ChannelArguments arguments;

        arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, settings.bdp_probe);
        arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
        arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
        stub = Functions::NewStub(
            grpc::CreateCustomChannel(settings.server + ":" + std::to_string(settings.port),
                                      grpc::InsecureChannelCredentials(), arguments));
    }

    // Fills the records of a batch.
    void call(enum function function, std::vector<struct call_record> *records)
    {
        switch (function) {
        case FUNCTION_VOID:
            return run(function, &Functions::Stub::AsyncVoid, records);
        case FUNCTION_BOOLEAN:
            return run(function, &Functions::Stub::AsyncBoolean, records);
        case FUNCTION_INT:
            return run(function, &Functions::Stub::AsyncInt, records);
        case FUNCTION_LONG:
            return run(function, &Functions::Stub::AsyncLong, records);
        case FUNCTION_STRING_32:
            return run(function, &Functions::Stub::AsyncString32, records);
        case FUNCTION_STRING_512:
            return run(function, &Functions::Stub::AsyncString512, records);
        case FUNCTION_STRING_1024:
            return run(function, &Functions::Stub::AsyncString1024, records);
        case FUNCTION_INT_ARRAY:
            return run(function, &Functions::Stub::AsyncIntArray, records);
        case FUNCTION_FLOAT_ARRAY:
            return run(function, &Functions::Stub::AsyncFloatArray, records);
        case FUNCTION_STRING_ARRAY:
            return run(function, &Functions::Stub::AsyncStringArray, records);
        case FUNCTION_PERSON:
            return run(function, &Functions::Stub::AsyncPerson, records);
        case FUNCTION_DISTANCE:
            return run(function, &Functions::Stub::AsyncDistance, records);
        }
    }

    size_t failed = 0;
    // Of the measured calls of the last batch.
    long switches = 0;

  private:
    template <class Request, class Reply>
    using Method = std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> (Functions::Stub::*)(
        grpc::ClientContext *, const Request &, grpc::CompletionQueue *);

    template <class Request, class Reply>
    void run(enum function function, Method<Request, Reply> method,
             std::vector<struct call_record> *records)
    {
        Request request;

        fill(function, &request);
        const std::string expected = answer(request).SerializeAsString();
        for (size_t i = 0; i < records->size(); i++) {
            struct call_record &record = (*records)[i];
            Reply reply;

            if (i == warmup)
                switches = -context_switches();
            StatusCode status = call_once(method, request, &reply, &record);

            if (status == StatusCode::OK && reply.SerializeAsString() != expected)
                status = WRONG;
            else if (status != StatusCode::OK)
                failed++;
            record.ok = status == StatusCode::OK;
            record.failure = static_cast<uint16_t>(status);
            // The stream of a call that failed is not known, for it may have had none, nor is that
            // of any call behind it.
            record.has_xid = failed == 0;
            record.xid = stream;
            stream += 2;
        }
        switches += context_switches();
    }

    // A deadline of gRPC's own would be a header of every request, so only the wait for the reply
    // has one.
    template <class Request, class Reply>
    StatusCode call_once(Method<Request, Reply> method, const Request &request, Reply *reply,
                         struct call_record *record)
    {
        grpc::ClientContext context;
        grpc::Status status;
        void *tag;
        bool ok;
        auto limit = std::chrono::system_clock::now() + timeout;

        context.set_wait_for_ready(wait);
        wait = false;
        record->start_ns = clock_now_ns();
        auto reader = (stub.get()->*method)(&context, request, &queue);
        reader->Finish(reply, &status, nullptr);
        bool late = queue.AsyncNext(&tag, &ok, limit) == grpc::CompletionQueue::TIMEOUT;
        if (late) {
            context.TryCancel();
            queue.Next(&tag, &ok);
        }
        record->end_ns = clock_now_ns();
        return late ? LATE : status.error_code();
    }

    const std::chrono::milliseconds timeout;
    const size_t warmup;
    std::unique_ptr<Functions::Stub> stub;
    grpc::CompletionQueue queue;
    uint32_t stream = 1;
    // Under the real clock the first call waits for a server that is still starting; nothing of
    // that is on the wire.
    bool wait = strcmp(clock_name(), "monotonic") == 0;
};

json_t *number_or_null(int connection, long long number)
{
    return connection < 0 ? json_null() : json_integer(number);
}

} // namespace

int run(int argc, char **argv)
{
    const Settings settings = read_settings(argc, argv);
    Caller caller(settings);
    std::vector<struct call_record> records(settings.warmup + settings.calls);
    int connection = -1;
    size_t failed = 0;
    long resent = 0;

    for (enum function function : settings.functions) {
        std::fill(records.begin(), records.end(), call_record{});
        caller.call(function, &records);
        // After a failure the channel may have another.
        if (connection < 0 || caller.failed > failed)
            connection = connection_find(settings.server.c_str(), settings.port);
        failed = caller.failed;
        const long before = resent;
        resent = connection < 0 ? 0 : connection_retransmits(connection);
        json_t *header = samples_object("batch");
        json_object_update_new(
            header,
            json_pack("{si ss ss si si ss si so si si si si ss}", "series", settings.series,
                      "transport", "grpc", "procedure", function_names[function - 1], "size",
                      static_cast<int>(function_size(function)), "thread", 0, "server",
                      settings.server.c_str(), "server_port", settings.port, "client_port",
                      number_or_null(connection, connection_local_port(connection)), "warmup",
                      static_cast<int>(settings.warmup), "tcp_retransmits",
                      static_cast<int>(std::max(0L, resent - before)), "function",
                      static_cast<int>(function), "context_switches",
                      static_cast<int>(caller.switches), "language", "cpp"));
        samples_put_batch(header, records.data(), records.size(), status_text);
    }
    return EXIT_SUCCESS;
}

} // namespace client
