-- SPDX-License-Identifier: Apache-2.0
--
-- Wireshark dissector of Sundial's MBCF (EtherType 0x88B6; guest-apps/sss-core/mbcf/wire.h), and of the Sun RPC inside
-- (guest-apps/sss-core/include/rpc/mbcf.h). Installation and display filters: README.md.
--
-- A capture of Sundial holds a frame once for each port that it passed, so the state of a channel (the ordered pair of
-- nodes, whose frames have one sequence) is kept for each interface by itself. Interfaces named ":fate" tell what became
-- of frames and have no state.

local ETHERTYPE, VERSION, HEADER, MOST = 0x88b6, 1, 48, 1408
local PART_HEAD, TASKQUE_HEAD = 8, 16
local ARGUMENT, ARGUMENTS_MOST = 8, 4

local ACK, SYN, SYNACK, RST, PROBE = 0x00, 0x01, 0x02, 0x03, 0x04
local TASKQUE, WRITE, READ, FIFO, SIGNAL = 0x10, 0x11, 0x12, 0x13, 0x14
local SWAP, CAS, FETCH_ADD, CLOSE, RESULT = 0x15, 0x16, 0x17, 0x18, 0x20
local OPS = {
    [ACK] = "ACK", [SYN] = "SYN", [SYNACK] = "SYNACK", [RST] = "RST", [PROBE] = "PROBE",
    [TASKQUE] = "TASKQUE", [WRITE] = "WRITE", [READ] = "READ", [FIFO] = "FIFO", [SIGNAL] = "SIGNAL",
    [SWAP] = "SWAP", [CAS] = "CAS", [FETCH_ADD] = "FETCH_ADD", [CLOSE] = "CLOSE", [RESULT] = "RESULT",
}
local STATUS = {
    [0] = "OK", "NOTASK", "NOQUE", "FULL", "KEY", "PERM", "FAULT", "READONLY", "NOFIFO", "NOHANDLER", "ALIGN", "RANGE",
    "BADOP", "BUSY",
}
local STATUS_TEXT = {
    [0] = "executed", "no such task", "its TASKQUE is not in use", "no room in the queue", "not an accesskey of the task",
    "the accesskey does not permit this", "an address is not mapped", "a page is mapped read-only", "no FIFO there",
    "no signal handler there", "not aligned", "longer than can be", "unknown operation", "no place for a connection",
}
local PERMISSION = { [0] = "none", "read", "write", "read, write" }
local RPC_TYPE = { [0] = "Call", "Reply" }
local RPC_KIND = { "CALL", "CALL_AT", "BIND" }
local SERVER_TYPE = { [0] = "1", "2", "1 and 2", "3", "3a", "3b" }
local REFUSAL = { [0] = "accepted", "no such program", "no such type", "too large", "no place" }
local BINDER_KIND = { "SET", "UNSET", "FIND" }

local mbcf = Proto("mbcf", "Memory-Based Communication Facility")

local F = {
    version = ProtoField.uint8("mbcf.version", "Version"),
    op = ProtoField.uint8("mbcf.op", "Operation", base.HEX, OPS),
    flags = ProtoField.uint8("mbcf.flags", "Flags", base.HEX),
    unsure = ProtoField.bool("mbcf.flags.unsure", "Acknowledges, but an error may be on its way", 8, nil, 0x01),
    ack_now = ProtoField.bool("mbcf.flags.ack_now", "Acknowledge at once", 8, nil, 0x02),
    more = ProtoField.bool("mbcf.flags.more", "More parts follow", 8, nil, 0x04),
    retx = ProtoField.bool("mbcf.flags.retx", "Sent before", 8, nil, 0x08),
    wide = ProtoField.bool("mbcf.flags.wide", "Eight bytes wide", 8, nil, 0x10),
    part = ProtoField.bool("mbcf.flags.part", "Begins with total and offset", 8, nil, 0x20),
    reserved = ProtoField.uint8("mbcf.flags.reserved", "Reserved", base.HEX, nil, 0xc0),
    status = ProtoField.uint8("mbcf.status", "Status", base.DEC, STATUS),
    src_node = ProtoField.uint16("mbcf.src.node", "Source node"),
    src_task = ProtoField.uint16("mbcf.src.task", "Source task"),
    dst_node = ProtoField.uint16("mbcf.dst.node", "Destination node"),
    dst_task = ProtoField.uint16("mbcf.dst.task", "Destination task"),
    node = ProtoField.uint16("mbcf.node", "Node (source or destination)"),
    task = ProtoField.uint16("mbcf.task", "Task (source or destination)"),
    epoch = ProtoField.uint32("mbcf.epoch", "Epoch"),
    seq = ProtoField.uint32("mbcf.seq", "Sequence number"),
    ack = ProtoField.uint32("mbcf.ack", "Acknowledgement"),
    key = ProtoField.uint64("mbcf.key", "Accesskey", base.HEX),
    address = ProtoField.uint64("mbcf.address", "Address", base.HEX),
    op_id = ProtoField.uint32("mbcf.op_id", "Operation id"),
    length = ProtoField.uint16("mbcf.length", "Payload length"),
    ack_epoch = ProtoField.uint16("mbcf.ack_epoch", "Low half of the acknowledged epoch"),
    payload = ProtoField.bytes("mbcf.payload", "Payload"),
    data = ProtoField.bytes("mbcf.data", "Data"),
    padding = ProtoField.bytes("mbcf.padding", "Padding"),
    part_total = ProtoField.uint32("mbcf.part.total", "Bytes of the segment"),
    part_offset = ProtoField.uint32("mbcf.part.offset", "Offset in the segment"),
    taskque_key = ProtoField.uint64("mbcf.taskque.key", "Accesskey of the writer", base.HEX),
    taskque_permission = ProtoField.uint32("mbcf.taskque.permission", "Permission", base.DEC, PERMISSION),
    taskque_connection = ProtoField.uint32("mbcf.taskque.connection", "Connection, as the writer calls it", base.HEX),
    read_length = ProtoField.uint32("mbcf.read.length", "Bytes to read"),
    read_reserved = ProtoField.uint32("mbcf.read.reserved", "Reserved"),
    signal_arguments = ProtoField.uint8("mbcf.signal.arguments", "Arguments"),
    signal_argument = ProtoField.uint64("mbcf.signal.argument", "Argument", base.HEX),
    operand = ProtoField.uint64("mbcf.operand", "Operand", base.HEX),
    expected = ProtoField.uint64("mbcf.cas.expected", "Expected value", base.HEX),
    new = ProtoField.uint64("mbcf.cas.new", "New value", base.HEX),
    old = ProtoField.uint64("mbcf.result.old", "Old value", base.HEX),
    result_of = ProtoField.uint8("mbcf.result.op", "Result of", base.HEX, OPS),
    channel = ProtoField.uint32("mbcf.channel", "Channel index (pair of nodes)"),
    connection = ProtoField.uint32("mbcf.connection", "Connection index (pair of tasks)"),
    response_in = ProtoField.framenum("mbcf.response_in", "Result in", base.NONE, frametype.RESPONSE),
    request_in = ProtoField.framenum("mbcf.request_in", "Request in", base.NONE, frametype.REQUEST),
    time = ProtoField.relative_time("mbcf.time", "Time from the request"),
    acked_in = ProtoField.framenum("mbcf.acked_in", "Acknowledged in", base.NONE, frametype.ACK),
    ack_time = ProtoField.relative_time("mbcf.ack_time", "Time to that acknowledgement"),
    acks = ProtoField.framenum("mbcf.analysis.acks_frame", "Acknowledges the frame", base.NONE, frametype.ACK),
    ack_rtt = ProtoField.relative_time("mbcf.analysis.ack_rtt", "Time from that frame"),
    analysis = ProtoField.string("mbcf.analysis", "Sequence"),
    retransmission = ProtoField.bool("mbcf.analysis.retransmission", "Sent again"),
    duplicate = ProtoField.bool("mbcf.analysis.duplicate", "Duplicate"),
    gap = ProtoField.uint32("mbcf.analysis.gap", "Frames missing before this"),
    first = ProtoField.framenum("mbcf.analysis.first", "First seen in", base.NONE, frametype.RETRANS_PREV),
    ack_unseen = ProtoField.bool("mbcf.analysis.ack_unseen", "Acknowledges a frame that was not seen"),
    ack_again = ProtoField.uint32("mbcf.analysis.duplicate_ack", "Duplicate ACK, number"),
    stale = ProtoField.bool("mbcf.analysis.stale_epoch", "Of an earlier incarnation"),
    new_epoch = ProtoField.bool("mbcf.analysis.new_epoch", "The node has started anew"),
    fragment = ProtoField.framenum("mbcf.segment.part", "Part of the segment in"),
    reassembled = ProtoField.framenum("mbcf.segment.reassembled_in", "Segment complete in"),
    segment_length = ProtoField.uint32("mbcf.segment.length", "Bytes of the whole segment"),
    rpc_xid = ProtoField.uint32("mbcf.rpc.xid", "RPC transaction", base.HEX),
    rpc_type = ProtoField.uint32("mbcf.rpc.type", "RPC message", base.DEC, RPC_TYPE),
    rpc_replies = ProtoField.uint64("mbcf.rpc.replies", "FIFO for replies", base.HEX),
    rpc_reply_most = ProtoField.uint32("mbcf.rpc.reply_most", "Bytes of the longest reply"),
    rpc_kind = ProtoField.uint32("mbcf.rpc.kind", "Kind", base.DEC, RPC_KIND),
    rpc_source = ProtoField.uint64("mbcf.rpc.source.address", "Address of the call", base.HEX),
    rpc_source_length = ProtoField.uint32("mbcf.rpc.source.length", "Bytes of the call"),
    rpc_program = ProtoField.uint32("mbcf.rpc.program", "Program", base.HEX),
    rpc_version = ProtoField.uint32("mbcf.rpc.version", "Program version"),
    rpc_server_type = ProtoField.uint32("mbcf.rpc.server_type", "Type of server", base.DEC, SERVER_TYPE),
    rpc_request_most = ProtoField.uint32("mbcf.rpc.request_most", "Bytes of the longest request"),
    rpc_depth = ProtoField.uint32("mbcf.rpc.depth", "Calls under way at most"),
    rpc_refusal = ProtoField.uint32("mbcf.rpc.refusal", "Answer", base.DEC, REFUSAL),
    rpc_key = ProtoField.uint64("mbcf.rpc.key", "Accesskey handed out", base.HEX),
    rpc_fifo = ProtoField.uint64("mbcf.rpc.fifo", "FIFO for calls", base.HEX),
    rpc_handler = ProtoField.uint64("mbcf.rpc.handler", "Signal handler for calls", base.HEX),
    rpc_area = ProtoField.uint64("mbcf.rpc.area", "Area for large calls", base.HEX),
    rpc_ring = ProtoField.uint32("mbcf.rpc.ring", "Bytes of the ring"),
    rpc_slots = ProtoField.uint32("mbcf.rpc.slots", "Places in the area"),
    rpc_slot = ProtoField.uint32("mbcf.rpc.slot", "Bytes of a place"),
    rpc_task = ProtoField.uint16("mbcf.rpc.task", "Task for calls"),
    binder_kind = ProtoField.uint32("mbcf.binder.kind", "Question", base.DEC, BINDER_KIND),
    binder_program = ProtoField.uint32("mbcf.binder.program", "Program", base.HEX),
    binder_version = ProtoField.uint32("mbcf.binder.version", "Program version"),
    binder_type = ProtoField.uint32("mbcf.binder.server_type", "Type of server", base.DEC, SERVER_TYPE),
    binder_answer = ProtoField.uint64("mbcf.binder.answer", "Address for the answer", base.HEX),
    rpc_call = ProtoField.framenum("mbcf.rpc.call_in", "RPC call in", base.NONE, frametype.REQUEST),
    rpc_reply = ProtoField.framenum("mbcf.rpc.reply_in", "RPC reply in", base.NONE, frametype.RESPONSE),
    rpc_time = ProtoField.relative_time("mbcf.rpc.time", "Time from the RPC call"),
}
for _, field in pairs(F) do
    table.insert(mbcf.fields, field)
end

local G, S = expert.group, expert.severity
local E = {
    version = ProtoExpert.new("mbcf.version.unknown", "Unknown version", G.PROTOCOL, S.ERROR),
    op = ProtoExpert.new("mbcf.op.unknown", "Unknown operation", G.PROTOCOL, S.ERROR),
    flags = ProtoExpert.new("mbcf.flags.reserved.set", "Reserved flag", G.PROTOCOL, S.WARN),
    length = ProtoExpert.new("mbcf.length.wrong", "Wrong length", G.MALFORMED, S.ERROR),
    padding = ProtoExpert.new("mbcf.padding.nonzero", "Padding is not zero", G.PROTOCOL, S.WARN),
    reserved = ProtoExpert.new("mbcf.reserved.nonzero", "Reserved field is not zero", G.PROTOCOL, S.WARN),
    failed = ProtoExpert.new("mbcf.status.failed", "The operation failed", G.RESPONSE_CODE, S.WARN),
    arguments = ProtoExpert.new("mbcf.signal.arguments.many", "More arguments than a SIGNAL has", G.PROTOCOL, S.ERROR),
    status = ProtoExpert.new("mbcf.status.misplaced", "Status outside a RESULT", G.PROTOCOL, S.WARN),
    sequence = ProtoExpert.new("mbcf.seq.misplaced", "Sequence number does not fit the operation", G.PROTOCOL, S.WARN),
    epoch = ProtoExpert.new("mbcf.epoch.zero", "Epoch is 0", G.PROTOCOL, S.WARN),
    retransmission = ProtoExpert.new("mbcf.retransmission", "Sent again", G.SEQUENCE, S.NOTE),
    duplicate = ProtoExpert.new("mbcf.duplicate", "Duplicate", G.SEQUENCE, S.NOTE),
    retx = ProtoExpert.new("mbcf.flags.retx.wrong", "RETX flag disagrees with what was seen", G.SEQUENCE, S.WARN),
    gap = ProtoExpert.new("mbcf.gap", "Frames are missing before this", G.SEQUENCE, S.WARN),
    ack_unseen = ProtoExpert.new("mbcf.ack.unseen", "Acknowledges a frame that was not seen", G.SEQUENCE, S.WARN),
    ack_again = ProtoExpert.new("mbcf.ack.duplicate", "Duplicate ACK", G.SEQUENCE, S.NOTE),
    stale = ProtoExpert.new("mbcf.epoch.stale", "Of an earlier incarnation", G.SEQUENCE, S.WARN),
    new_epoch = ProtoExpert.new("mbcf.epoch.new", "The node has started anew", G.SEQUENCE, S.NOTE),
    unanswered = ProtoExpert.new("mbcf.result.unasked", "RESULT of no request that was seen", G.SEQUENCE, S.NOTE),
    part = ProtoExpert.new("mbcf.part.wrong", "Part does not fit its segment", G.SEQUENCE, S.WARN),
}
for _, item in pairs(E) do
    table.insert(mbcf.experts, item)
end

mbcf.prefs.brief = Pref.bool("Brief", false,
    "Only the header's fields and the data: no state, for programs that read many frames")
mbcf.prefs.rpc = Pref.bool("Dissect Sun RPC", true, "Hand Sun RPC messages to Wireshark's own dissector")

-- Fixed payload lengths, and least ones where data follow.
local CONNECTION_NAME = 2147483648 -- set in an op_id that names a connection instead of an operation
local SEQ_MOST = 4294967295 -- 1 follows
local SEQ_WRAP, SEQ_HALF = 4294967296, 2147483648
local EXACT = { [READ] = 8, [SWAP] = 8, [FETCH_ADD] = 8, [CAS] = 16, [CLOSE] = 0, [ACK] = 0, [PROBE] = 0, [RST] = 0,
    [SYN] = 0, [SYNACK] = 0 }
local LEAST = { [TASKQUE] = TASKQUE_HEAD }

local interface_id = Field.new("frame.interface_id")
local interface_name = Field.new("frame.interface_name")

-- ---- state of a capture; filled in the first pass, in the order of frames ----

local channels  -- by interface, source and destination node
local indices   -- of channels and connections, by pairs that both directions share
local fates     -- by interface id: whether it is one of fates
local places    -- by frame number: the interface id, or what stands for it
local latest    -- the highest frame number that was analysed: tshark -2 says "visited" of frames that were not
-- By frame number. Plain numbers where a frame usually has one: a table for each frame costs more than the dissection.
local notes     -- what is unusual
local acks      -- the frame that is acknowledged
local ack_times -- when that was seen
local acked_in  -- the frame that acknowledges it
local acked_at  -- when that was seen
local requests  -- the request that a frame is a part of, or the result of
local calls     -- the RPC call that a frame carries, or answers
local segments  -- the segment of several frames that a frame is a part of

local function new_index()
    return { next = 0 }
end

function mbcf.init()
    channels, fates, places, latest = {}, {}, {}, 0
    indices = { channel = new_index(), connection = new_index() }
    notes, acks, ack_times, acked_in, acked_at = {}, {}, {}, {}, {}
    requests, calls, segments = {}, {}, {}
end

-- A number for an unordered pair, counted from 0 as they come.
local function index(of, one, other)
    if one > other then
        one, other = other, one
    end
    local row = of[one]
    if not row then
        row = {}
        of[one] = row
    end
    local found = row[other]
    if not found then
        found = of.next
        row[other], of.next = found, found + 1
    end
    return found
end

local function new_channel(epoch, earlier)
    -- seen, times: first frame of each seq; top: the last of them; acked: the highest that is acknowledged; accepted: the
    -- highest that a receiver here has executed; requests: by op_id; calls: of RPC, by xid; open: segments of which parts
    -- are to come
    return { epoch = epoch, earlier = earlier, seen = {}, times = {}, acks = 0, requests = {}, calls = {}, open = {} }
end

local function channel_key(interface, source, target)
    return (interface * 65536 + source) * 65536 + target
end

local function note(frame)
    local found = notes[frame.number]
    if not found then
        found = {}
        notes[frame.number] = found
    end
    return found
end

-- The channel of a frame, nil for one of an earlier incarnation.
local function channel_of(frame)
    local key = channel_key(frame.interface, frame.source, frame.target)
    local channel = channels[key]
    if not channel then
        channel = new_channel(frame.epoch, {})
        channels[key] = channel
    elseif channel.epoch ~= frame.epoch then
        if channel.earlier[frame.epoch] then
            note(frame).stale = true
            return nil
        end
        channel.earlier[channel.epoch] = true
        channel = new_channel(frame.epoch, channel.earlier)
        channels[key] = channel
        note(frame).new_epoch = true
    end
    return channel
end

-- Whether sequence number `one` lies behind `other`: 32 bits that go round, 0 left out.
local function after(one, other)
    local distance = (one - other) % SEQ_WRAP
    return distance > 0 and distance < SEQ_HALF
end

local function following(seq)
    return seq == SEQ_MOST and 1 or seq + 1
end

-- Where a frame stands in its channel's sequence. A receiver executes the next one and drops every other.
local function analyse_sequence(channel, frame)
    local seq, first = frame.seq, channel.seen[frame.seq]
    if first and channel.opened and not frame.retx then
        first, channel.opened = nil, nil -- after a SYN, numbers of what was given up are used again
        channel.accepted, channel.acked = seq - 1, nil
    end
    if first or frame.retx then
        local found = note(frame)
        found.first = first
        found.duplicate = not frame.retx
        found.retransmission = frame.retx
        found.wrong_retx = frame.outbound and (first ~= nil) ~= frame.retx
    end
    if not first then
        channel.seen[seq], channel.times[seq] = frame.number, frame.time
    end
    local accepted = channel.accepted
    if not accepted or seq == following(accepted) then
        channel.accepted = seq
        frame.accepted = true
    elseif after(seq, accepted) then
        frame.missing = (seq - accepted) % SEQ_WRAP - (seq < accepted and 2 or 1)
        note(frame).gap = frame.missing
    end
    if not channel.top or after(seq, channel.top) then
        channel.top = seq
    end
end

-- Links the frames that an acknowledgement covers, from the latest backwards, to the frame that brings it.
local function link_acknowledged(reverse, ack, frame)
    local seen, seq = reverse.seen, ack
    local number = seen[seq]
    while number and seq ~= reverse.acked and not acked_in[number] do
        acked_in[number], acked_at[number] = frame.number, frame.time
        seq = seq == 1 and SEQ_MOST or seq - 1
        number = seen[seq]
    end
    reverse.acked = ack
end

local function analyse_ack(channel, reverse, frame)
    local ack, ack_epoch = frame.ack, frame.ack_epoch
    if ack_epoch == 0 then
        return
    end
    if reverse then
        local top = reverse.top
        if reverse.epoch % 65536 ~= ack_epoch and not (ack_epoch == 65535 and reverse.epoch % 65536 == 0) then
            note(frame).stale_ack = true
        elseif top and after(ack, top) then
            note(frame).ack_unseen = true
        elseif top and reverse.seen[ack] then
            acks[frame.number], ack_times[frame.number] = reverse.seen[ack], reverse.times[ack]
            -- What completes operations: not UNSURE, not behind a gap, not before the channel is open.
            local sure = not frame.unsure and not frame.missing and frame.op ~= SYNACK
            if sure and (not reverse.acked or after(ack, reverse.acked)) then
                link_acknowledged(reverse, ack, frame)
            end
        end
    end
    if frame.op == ACK and channel.last_ack == ack and channel.last_ack_epoch == ack_epoch then
        channel.acks = channel.acks + 1
        note(frame).ack_again = channel.acks
    elseif channel.last_ack ~= ack then
        channel.acks = 0
    end
    channel.last_ack, channel.last_ack_epoch = ack, ack_epoch
end

local function analyse_results(channel, reverse, frame)
    local op_id = frame.op_id
    if op_id == 0 then
        return
    elseif op_id >= CONNECTION_NAME then
        return -- no result is to come, but of a failure
    end
    local request
    if frame.op == RESULT then
        request = reverse and reverse.requests[op_id]
        if request then
            request.response = request.response or frame.number
            if frame.accepted then -- the n-th result is that of the n-th READ of a segment
                request.taken = (request.taken or 0) + 1
                frame.more = request.more[request.taken] or false
            end
        else
            note(frame).unasked = true
        end
    else
        request = channel.requests[op_id]
        -- Parts of one segment share an op_id; behind the last one it may come round again.
        if not request or frame.accepted and (request.whole or request.op ~= frame.op) then
            request = { number = frame.number, time = frame.time, op = frame.op, more = {} }
            channel.requests[op_id] = request
        end
        if frame.accepted then
            request.whole = not frame.more
            request.more[#request.more + 1] = frame.op == READ and frame.more
        end
    end
    requests[frame.number] = request
end

-- The interface of a frame. Where Wireshark builds no tree in the first pass its id cannot be had; the direction tells as
-- much of a frame between two stations.
local SENT, RECEIVED, NO_ID = 0, 1, 1048576

local function place_of(frame, pinfo)
    local id = interface_id()
    if id then
        return id.value
    elseif pinfo.p2p_dir == SENT then
        return NO_ID + frame.source
    elseif pinfo.p2p_dir == RECEIVED then
        return NO_ID + frame.target
    end
    return NO_ID
end

local function analyse(frame, pinfo)
    frame.interface = place_of(frame, pinfo)
    frame.outbound = pinfo.p2p_dir == SENT
    places[frame.number] = frame.interface
    local fate = fates[frame.interface]
    if fate == nil then
        local name = interface_name()
        fate = name ~= nil and tostring(name.value):sub(-5) == ":fate"
        fates[frame.interface] = fate
    end
    if fate or frame.epoch == 0 then
        return
    end
    local channel = channel_of(frame)
    if not channel then
        return
    end
    local reverse = channels[channel_key(frame.interface, frame.target, frame.source)]
    frame.channel, frame.reverse = channel, reverse
    if frame.op == SYN then
        channel.opened = true
    elseif frame.op > PROBE and frame.seq > 0 then
        analyse_sequence(channel, frame)
    end
    analyse_ack(channel, reverse, frame)
    analyse_results(channel, reverse, frame)
end

-- ---- segments of several frames ----

local function open_name(frame)
    local name = frame.op * 4294967296 + frame.source_task * 65536 + frame.target_task
    return frame.op == RESULT and "result " .. frame.op_id or name
end

-- Collects the parts of a segment as a receiver accepts them. `rpc_at`: where an RPC message begins in the first one.
local function collect(frame, data, captured_whole, rpc_at)
    local open, name = frame.channel.open, open_name(frame)
    local segment = open[name]
    if not segment then
        if not frame.more then
            return
        end
        segment = { parts = {}, bytes = ByteArray.new(), whole = true, rpc_at = rpc_at }
        open[name] = segment
    end
    segments[frame.number] = segment
    if frame.offset and segment.whole and frame.offset ~= segment.bytes:len() then
        note(frame).part_wrong = segment.bytes:len()
    end
    segment.parts[#segment.parts + 1] = frame.number
    segment.whole = segment.whole and captured_whole
    if segment.whole then
        segment.bytes:append(data:bytes())
    end
    if not frame.more then
        segment.complete = frame.number
        open[name] = nil
    end
end

-- ---- Sun RPC ----

local CALL, REPLY = 0, 1
local LAST_FLAVOUR, MOST_CREDENTIAL = 6, 400
local rpc_dissector = Dissector.get("rpc")

-- The type of the RPC message (RFC 5531 section 9) at `at`, of which `left` bytes are there; nil: none begins there.
local function rpc_type(tvb, at, left)
    if left < 24 or tvb:len() < at + 32 and tvb:len() < at + left then
        return nil
    end
    local kind, third = tvb(at + 4, 4):uint(), tvb(at + 8, 4):uint()
    if kind == CALL then
        local call = left >= 40 and third == 2 and tvb(at + 24, 4):uint() <= LAST_FLAVOUR
            and tvb(at + 28, 4):uint() <= MOST_CREDENTIAL
        return call and CALL or nil
    end
    return kind == REPLY and third <= 1 and REPLY or nil
end

-- Keeps calls by xid and finds those that replies answer, in the first pass.
local function analyse_rpc(frame, xid, kind)
    local call
    if kind == CALL then
        call = frame.channel.calls[xid]
        if not call or frame.accepted then
            call = { number = frame.number, time = frame.time }
            frame.channel.calls[xid] = call
        end
    else
        call = frame.reverse and frame.reverse.calls[xid]
        if call then
            call.reply = call.reply or frame.number
        end
    end
    calls[frame.number] = call
end

-- ---- the tree ----

local function seconds(time)
    local whole = math.floor(time)
    return NSTime.new(whole, math.floor((time - whole) * 1e9 + 0.5))
end

local FLAGS = { { 1, "UNSURE" }, { 2, "ACK_NOW" }, { 4, "MORE" }, { 8, "RETX" }, { 16, "WIDE" }, { 32, "PART" } }
local flag_names = {} -- by value, as they come

local function names_of(flags)
    local found = flag_names[flags]
    if not found then
        local names = {}
        for _, pair in ipairs(FLAGS) do
            if math.floor(flags / pair[1]) % 2 == 1 then
                names[#names + 1] = pair[2]
            end
        end
        found = table.concat(names, ", ")
        flag_names[flags] = found
    end
    return found
end

local function add_flags(tree, range, frame)
    local item = tree:add(F.flags, range)
    item:add(F.unsure, range)
    item:add(F.ack_now, range)
    item:add(F.more, range)
    item:add(F.retx, range)
    item:add(F.wide, range)
    item:add(F.part, range)
    item:add(F.reserved, range)
    local names = names_of(frame.flags)
    if names ~= "" then
        item:append_text(" (" .. names .. ")")
    end
    if frame.flags >= 64 then
        item:add_proto_expert_info(E.flags)
    end
end

-- What is unusual about a frame's place in the sequence; returns it in words.
local function add_notes(tree, item, found)
    local words = {}
    local function say(field, value, expert_item, text)
        tree:add(field, value):set_generated()
        item:add_proto_expert_info(expert_item, text)
        words[#words + 1] = text
    end
    if found.retransmission then
        say(F.retransmission, true, E.retransmission,
            found.first and "Retransmission" or "Retransmission of a frame not seen here")
    end
    if found.duplicate then
        say(F.duplicate, true, E.duplicate, "Duplicate")
    end
    if found.first then
        tree:add(F.first, found.first):set_generated()
    end
    if found.wrong_retx then
        item:add_proto_expert_info(E.retx, found.first and "Sent again without RETX" or "RETX on a frame not sent before")
    end
    if found.gap then
        say(F.gap, found.gap, E.gap, "Gap")
    end
    if found.ack_unseen then
        say(F.ack_unseen, true, E.ack_unseen, "ACKed unseen frame")
    end
    if found.ack_again then
        say(F.ack_again, found.ack_again, E.ack_again, "Dup ACK #" .. found.ack_again)
    end
    if found.stale or found.stale_ack then
        say(F.stale, true, E.stale, found.stale and "Stale epoch" or "ACK of a stale epoch")
    end
    if found.new_epoch then
        say(F.new_epoch, true, E.new_epoch, "New epoch")
    end
    if found.unasked then
        item:add_proto_expert_info(E.unanswered)
    end
    return table.concat(words, ", ")
end

local function add_matches(tree, frame, request)
    local answer = acked_in[frame.number]
    if answer then
        tree:add(F.acked_in, answer):set_generated()
        tree:add(F.ack_time, seconds(acked_at[frame.number] - frame.time)):set_generated()
    end
    local acked = acks[frame.number]
    if acked then
        tree:add(F.acks, acked):set_generated()
        tree:add(F.ack_rtt, seconds(frame.time - ack_times[frame.number])):set_generated()
    end
    if not request then
        return
    end
    if frame.op == RESULT then
        tree:add(F.result_of, request.op):set_generated()
        tree:add(F.request_in, request.number):set_generated()
        tree:add(F.time, seconds(frame.time - request.time)):set_generated()
    elseif request.response then
        tree:add(F.response_in, request.response):set_generated()
    end
end

local function add_rpc(tree, frame, xid, kind)
    tree:add(F.rpc_xid, xid):set_generated()
    tree:add(F.rpc_type, kind):set_generated()
    local call = calls[frame.number]
    if not call then
        return
    end
    if kind == REPLY then
        tree:add(F.rpc_call, call.number):set_generated()
        tree:add(F.rpc_time, seconds(frame.time - call.time)):set_generated()
    elseif call.reply then
        tree:add(F.rpc_reply, call.reply):set_generated()
    end
end

-- ---- heads of RPC over MBCF (guest-apps/sss-core/rpc/mbcf_messages.h), in the machines' byte order: little endian ----

local RPC_HEAD, BIND, BOUND, QUERY = 16, 24, 56, 32
local BOUND_MAGIC, QUERY_MAGIC = 0x444e424d, 0x4442424d

local function add_bound(tree, tvb, at)
    tree:add_le(F.rpc_refusal, tvb(at + 4, 4))
    tree:add_le(F.rpc_key, tvb(at + 8, 8))
    tree:add_le(F.rpc_fifo, tvb(at + 16, 8))
    tree:add_le(F.rpc_handler, tvb(at + 24, 8))
    tree:add_le(F.rpc_area, tvb(at + 32, 8))
    tree:add_le(F.rpc_ring, tvb(at + 40, 4))
    tree:add_le(F.rpc_slots, tvb(at + 44, 4))
    tree:add_le(F.rpc_slot, tvb(at + 48, 4))
    tree:add_le(F.rpc_task, tvb(at + 52, 2))
    return "BOUND"
end

local function add_query(tree, tvb, at)
    tree:add_le(F.binder_kind, tvb(at + 4, 4))
    tree:add_le(F.binder_program, tvb(at + 8, 4))
    tree:add_le(F.binder_version, tvb(at + 12, 4))
    tree:add_le(F.binder_type, tvb(at + 16, 4))
    tree:add_le(F.binder_answer, tvb(at + 24, 8))
    return "binder " .. (BINDER_KIND[tvb(at + 4, 4):le_uint()] or "?")
end

local function add_rpc_head(tree, tvb, at, left)
    local kind = tvb(at + 12, 4):le_uint()
    local rest = left - RPC_HEAD
    if kind == 1 and not rpc_type(tvb, at + RPC_HEAD, rest) or kind == 2 and rest ~= 16 or kind == 3 and rest ~= BIND then
        return nil
    end
    tree:add_le(F.rpc_replies, tvb(at, 8))
    tree:add_le(F.rpc_reply_most, tvb(at + 8, 4))
    tree:add_le(F.rpc_kind, tvb(at + 12, 4))
    if kind == 2 then
        tree:add_le(F.rpc_source, tvb(at + 16, 8))
        tree:add_le(F.rpc_source_length, tvb(at + 24, 4))
    elseif kind == 3 then
        tree:add_le(F.rpc_program, tvb(at + 16, 4))
        tree:add_le(F.rpc_version, tvb(at + 20, 4))
        tree:add_le(F.rpc_server_type, tvb(at + 24, 4))
        tree:add_le(F.rpc_request_most, tvb(at + 28, 4))
        tree:add_le(F.rpc_depth, tvb(at + 32, 4))
    end
    return RPC_KIND[kind], kind == 1
end

-- Adds what is in front of an RPC message -> a word for it, and where an RPC message may begin.
local function dissect_heads(tree, tvb, at, left, op)
    local have = tvb:len() - at
    if op == FIFO and left == BOUND and have >= BOUND and tvb(at, 4):le_uint() == BOUND_MAGIC then
        return add_bound(tree, tvb, at), nil
    elseif op == TASKQUE and left >= RPC_HEAD and have >= RPC_HEAD then
        if left == QUERY and have >= QUERY and tvb(at, 4):le_uint() == QUERY_MAGIC then
            return add_query(tree, tvb, at), nil
        end
        local kind = tvb(at + 12, 4):le_uint()
        if RPC_KIND[kind] and have >= math.min(left, RPC_HEAD + 32) then
            local word, call = add_rpc_head(tree, tvb, at, left)
            return word, call and at + RPC_HEAD or nil
        end
        return nil, nil
    end
    return nil, at
end

-- ---- payloads: each adds its fields and returns the bytes in front of the data, nil where there are no data ----

local function reserved(tree, field, range)
    local item = tree:add(field, range)
    if range:uint() ~= 0 then
        item:add_proto_expert_info(E.reserved)
    end
end

local function operand(tree, tvb)
    tree:add(F.operand, tvb(HEADER, 8))
end

local HEADS = {
    [WRITE] = function() return 0 end,
    [FIFO] = function(tree, tvb, frame)
        if not frame.part then
            return 0
        end
        tree:add(F.part_total, tvb(HEADER, 4))
        tree:add(F.part_offset, tvb(HEADER + 4, 4))
        frame.offset = tvb(HEADER + 4, 4):uint()
        return PART_HEAD
    end,
    [TASKQUE] = function(tree, tvb)
        tree:add(F.taskque_key, tvb(HEADER, 8))
        tree:add(F.taskque_permission, tvb(HEADER + 8, 4))
        tree:add(F.taskque_connection, tvb(HEADER + 12, 4))
        return TASKQUE_HEAD
    end,
    [READ] = function(tree, tvb)
        tree:add(F.read_length, tvb(HEADER, 4))
        reserved(tree, F.read_reserved, tvb(HEADER + 4, 4))
    end,
    [SIGNAL] = function(tree, tvb, frame)
        for place = 0, frame.status - 1 do
            tree:add(F.signal_argument, tvb(HEADER + ARGUMENT * place, ARGUMENT))
        end
        return ARGUMENT * frame.status
    end,
    [SWAP] = operand,
    [FETCH_ADD] = operand,
    [CAS] = function(tree, tvb)
        tree:add(F.expected, tvb(HEADER, 8))
        tree:add(F.new, tvb(HEADER + 8, 8))
    end,
    [RESULT] = function(tree, tvb, frame, of)
        if of == SWAP or of == CAS or of == FETCH_ADD then
            tree:add(F.old, tvb(HEADER, 8))
            return nil
        end
        return 0
    end,
}

-- Bytes that a payload has before its data.
local function least_length(frame)
    if frame.op == SIGNAL then
        return ARGUMENT * frame.status
    end
    return EXACT[frame.op] or LEAST[frame.op] or frame.op == FIFO and frame.part and PART_HEAD or 0
end

-- What a RESULT carries, by the operation that it answers: bytes, or nil where any number is right.
local function result_length(frame, of)
    if frame.status ~= 0 then
        return 0
    elseif not of or of == READ then
        return nil
    end
    return (of == SWAP or of == CAS or of == FETCH_ADD) and 8 or 0
end

-- What is wrong with a frame's length, nil where nothing is.
local function length_fault(frame, of, reported)
    local length, op = frame.length, frame.op
    if length > MOST then
        return "More than " .. MOST .. " bytes of payload"
    elseif length > reported - HEADER then
        return "The frame has room for " .. reported - HEADER .. " bytes of payload"
    elseif EXACT[op] and length ~= EXACT[op] then
        return OPS[op] .. " has " .. EXACT[op] .. " bytes of payload"
    elseif length < least_length(frame) then
        return "The payload has at least " .. least_length(frame) .. " bytes"
    elseif op == RESULT then
        local right = result_length(frame, of)
        return right and length ~= right and "This RESULT has " .. right .. " bytes of payload" or nil
    end
    return nil
end

local function check_header(items, frame)
    local op, status = frame.op, frame.status
    if not OPS[op] then
        items.op:add_proto_expert_info(E.op)
    elseif op > PROBE and frame.seq == 0 then
        items.seq:add_proto_expert_info(E.sequence, "In the sequence, but without a number")
    elseif frame.seq ~= 0 and (op == ACK or op == PROBE or op == RST) then
        items.seq:add_proto_expert_info(E.sequence, "Outside the sequence, but with a number")
    end
    if op == SIGNAL then
        if status > ARGUMENTS_MOST then
            items.status:add_proto_expert_info(E.arguments)
        end
    elseif status ~= 0 then
        local text = STATUS_TEXT[status] or "status " .. status
        items.status:append_text(": " .. text)
        if op == RESULT then
            items.status:add_proto_expert_info(E.failed, "The operation failed: " .. text)
        else
            items.status:add_proto_expert_info(E.status)
        end
    end
    if frame.epoch == 0 then
        items.epoch:add_proto_expert_info(E.epoch)
    end
end

local function info(frame, words)
    local text = string.format("%u.%u \226\134\146 %u.%u %s", frame.source, frame.source_task, frame.target, frame.target_task,
        OPS[frame.op] or string.format("operation 0x%02x", frame.op))
    if words ~= "" then
        text = "[" .. words .. "] " .. text
    end
    if frame.op == RESULT then
        text = text .. " " .. (STATUS[frame.status] or frame.status)
    end
    local names = names_of(frame.flags)
    if names ~= "" then
        text = text .. " [" .. names .. "]"
    end
    if frame.seq > 0 then
        text = text .. " Seq=" .. frame.seq
    end
    if frame.ack_epoch > 0 then
        text = text .. " Ack=" .. frame.ack
    end
    if frame.op_id > 0 then
        text = text .. " Id=" .. frame.op_id
    end
    return text .. " Len=" .. frame.length
end

local function dissect_rpc(tvb, pinfo, root, frame)
    if not mbcf.prefs.rpc then
        return
    end
    -- Tasks are what ports are elsewhere: one RPC conversation for each pair of them, at each interface, so that a frame
    -- seen at two ports is no retransmission to the RPC dissector either.
    local base = (places[frame.number] or 0) % NO_ID * 65536
    pinfo.src_port, pinfo.dst_port = base + frame.source_task, base + frame.target_task
    pinfo.cols.info:append(" | ")
    pinfo.cols.info:fence()
    rpc_dissector:call(tvb, pinfo, root)
end

local function add_segment(tree, pinfo, root, frame, segment)
    if not segment.complete then
        return
    elseif frame.number ~= segment.complete then
        tree:add(F.reassembled, segment.complete):set_generated()
        return
    end
    for _, number in ipairs(segment.parts) do
        tree:add(F.fragment, number):set_generated()
    end
    if segment.whole then
        local whole = segment.bytes:tvb("MBCF segment")
        tree:add(F.segment_length, whole(), whole:len()):set_generated()
        if segment.rpc_at then
            dissect_rpc(whole(segment.rpc_at):tvb(), pinfo, root, frame)
        end
    end
end

-- The data of an operation at `at`, of which `left` bytes are there.
local function dissect_data(tvb, pinfo, root, tree, item, frame, at, left)
    local begins = not frame.channel or not frame.channel.open[open_name(frame)]
    if frame.visited then
        local segment = segments[frame.number]
        begins = not segment or segment.parts[1] == frame.number
    end
    local word, rpc_at, kind
    if begins then
        word, rpc_at = dissect_heads(item, tvb, at, left, frame.op)
        kind = rpc_at and rpc_type(tvb, rpc_at, at + left - rpc_at)
    end
    if word then
        pinfo.cols.info:append(" | " .. word)
    end
    if kind then
        local xid = tvb(rpc_at, 4):uint()
        if frame.channel then
            analyse_rpc(frame, xid, kind)
        end
        add_rpc(tree, frame, xid, kind)
    end
    if frame.accepted then
        collect(frame, tvb(at, math.min(left, tvb:len() - at)), left <= tvb:len() - at, kind and rpc_at - at)
    end
    local segment = segments[frame.number]
    if segment then
        add_segment(tree, pinfo, root, frame, segment)
    elseif kind and not frame.more then
        dissect_rpc(tvb:range(rpc_at, math.min(at + left, tvb:len()) - rpc_at):tvb(), pinfo, root, frame)
    end
end

local function dissect_payload(tvb, pinfo, root, tree, frame, of)
    local captured = math.min(frame.length, tvb:len() - HEADER)
    if captured < 1 then
        return
    end
    local item = tree:add(F.payload, tvb(HEADER, captured))
    local head = HEADS[frame.op]
    if not head or least_length(frame) > captured then
        return
    end
    local skip = head(item, tvb, frame, of)
    if not skip or captured <= skip then
        return
    end
    item:add(F.data, tvb(HEADER + skip, captured - skip))
    dissect_data(tvb, pinfo, root, tree, item, frame, HEADER + skip, frame.length - skip)
    local found = notes[frame.number]
    if found and found.part_wrong then
        item:add_proto_expert_info(E.part, "The segment goes on at " .. found.part_wrong)
    end
end

-- Fields for display filters alone, and the state of channels.
local function add_analysis(tree, items, frame, pinfo)
    tree:add(F.node, frame.source):set_hidden()
    tree:add(F.node, frame.target):set_hidden()
    tree:add(F.task, frame.source_task):set_hidden()
    tree:add(F.task, frame.target_task):set_hidden()
    tree:add(F.channel, index(indices.channel, frame.source, frame.target)):set_generated()
    tree:add(F.connection, index(indices.connection, frame.source * 65536 + frame.source_task,
        frame.target * 65536 + frame.target_task)):set_generated()
    if not frame.visited then
        latest = frame.number
        analyse(frame, pinfo)
    end
    check_header(items, frame)
    add_matches(tree, frame, requests[frame.number])
    local found = notes[frame.number]
    return found and add_notes(tree, items.seq, found) or ""
end

local function short(tvb, pinfo, root)
    root:add(mbcf, tvb()):add_proto_expert_info(E.length, "Shorter than the header of " .. HEADER .. " bytes")
    pinfo.cols.protocol, pinfo.cols.info = "MBCF", "Malformed: shorter than the header"
end

local function add_padding(tree, tvb, at)
    local rest = tvb(at)
    local item = tree:add(F.padding, rest)
    if rest:bytes():tohex():find("[^0]") then
        item:add_proto_expert_info(E.padding)
    end
end

-- The header's fields and the heads of the payload, and nothing else.
local BRIEF = {
    { F.op, 1, 1 }, { F.flags, 2, 1 }, { F.src_node, 4, 2 }, { F.src_task, 6, 2 }, { F.dst_node, 8, 2 },
    { F.dst_task, 10, 2 }, { F.epoch, 12, 4 }, { F.seq, 16, 4 }, { F.ack, 20, 4 }, { F.address, 32, 8 }, { F.op_id, 40, 4 },
    { F.length, 44, 2 }, { F.ack_epoch, 46, 2 },
}

local function dissect_briefly(tvb, root)
    local tree = root:add(mbcf, tvb())
    for _, row in ipairs(BRIEF) do
        tree:add(row[1], tvb(row[2], row[3]))
    end
    local status = tvb(3, 1)
    tree:add(tvb(1, 1):uint() == SIGNAL and F.signal_arguments or F.status, status)
    local length = math.min(tvb(44, 2):uint(), tvb:len() - HEADER)
    if length < 1 then
        return
    end
    local frame = { op = tvb(1, 1):uint(), part = tvb(2, 1):uint() % 64 >= 32, status = status:uint() }
    local head = HEADS[frame.op]
    local skip = head and length >= least_length(frame) and head(tree, tvb, frame)
    if skip and length > skip then
        tree:add(F.data, tvb(HEADER + skip, length - skip))
    end
end

function mbcf.dissector(tvb, pinfo, root)
    local captured = tvb:len()
    if captured < HEADER then
        return short(tvb, pinfo, root)
    elseif mbcf.prefs.brief then
        return dissect_briefly(tvb, root)
    end
    -- Each range is made once: in Lua, making objects is what dissection costs.
    local op, flags, status = tvb(1, 1), tvb(2, 1), tvb(3, 1)
    local source, source_task, target, target_task = tvb(4, 2), tvb(6, 2), tvb(8, 2), tvb(10, 2)
    local epoch, seq, ack, op_id = tvb(12, 4), tvb(16, 4), tvb(20, 4), tvb(40, 4)
    local length, ack_epoch = tvb(44, 2), tvb(46, 2)
    local bits = flags:uint()
    local frame = {
        number = pinfo.number, time = pinfo.rel_ts, visited = pinfo.number <= latest,
        op = op:uint(), flags = bits, status = status:uint(),
        source = source:uint(), source_task = source_task:uint(), target = target:uint(), target_task = target_task:uint(),
        epoch = epoch:uint(), seq = seq:uint(), ack = ack:uint(), op_id = op_id:uint(), length = length:uint(),
        ack_epoch = ack_epoch:uint(), unsure = bits % 2 == 1, more = bits % 8 >= 4, retx = bits % 16 >= 8, part = bits % 64 >= 32,
    }
    local finish = math.min(HEADER + frame.length, captured)
    local tree = root:add(mbcf, tvb(0, finish))
    local version = tvb(0, 1)
    pinfo.cols.protocol = "MBCF"
    local version_item = tree:add(F.version, version)
    if version:uint() ~= VERSION then
        version_item:add_proto_expert_info(E.version)
        pinfo.cols.info = "Unknown version " .. version:uint()
        return
    end
    local items = { op = tree:add(F.op, op) }
    add_flags(tree, flags, frame)
    items.status = tree:add(frame.op == SIGNAL and F.signal_arguments or F.status, status)
    tree:add(F.src_node, source)
    tree:add(F.src_task, source_task)
    tree:add(F.dst_node, target)
    tree:add(F.dst_task, target_task)
    items.epoch = tree:add(F.epoch, epoch)
    items.seq = tree:add(F.seq, seq)
    tree:add(F.ack, ack)
    tree:add(F.key, tvb(24, 8))
    tree:add(F.address, tvb(32, 8))
    tree:add(F.op_id, op_id)
    items.length = tree:add(F.length, length)
    tree:add(F.ack_epoch, ack_epoch)
    pinfo.cols.info = info(frame, add_analysis(tree, items, frame, pinfo))
    pinfo.cols.info:fence()
    local request = requests[frame.number]
    local of = frame.op == RESULT and request and request.op
    local fault = length_fault(frame, of, tvb:reported_len())
    if fault then
        items.length:add_proto_expert_info(E.length, fault)
        return
    end
    dissect_payload(tvb, pinfo, root, tree, frame, of)
    if captured > finish then
        add_padding(tree, tvb, finish)
    end
end

DissectorTable.get("ethertype"):add(ETHERTYPE, mbcf)
-- The state lives as long as the capture: looking for what can be freed of it again and again takes a third of the time.
collectgarbage("setpause", 1000)
