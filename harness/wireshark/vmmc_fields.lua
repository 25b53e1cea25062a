-- SPDX-License-Identifier: Apache-2.0
--
-- Numbers, fields and expert items of vmmc.lua, which loads this. The layout of packets: vmmc_wire.lua; of rings:
-- guest-apps/sss-core/rpc/ring.h; of ShrimpRPC's buffers: guest-apps/shrimp/README.md.

local directory = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local wire = dofile(directory .. "vmmc_wire.lua")
local SHRIMP_STATUS = { [0] = "OK", [0xff00] = "BAD_PROCEDURE", [0xff01] = "GARBAGE", [0xff02] = "NO_REPLY", [0xff03] = "TOO_LONG" }

local F = {
    version = ProtoField.uint8("vmmc.version", "Version"),
    kind = ProtoField.uint8("vmmc.kind", "Kind", base.DEC, wire.kind_texts),
    flags = ProtoField.uint8("vmmc.flags", "Flags", base.HEX),
    notify = ProtoField.bool("vmmc.flags.notify", "Notifies the receiver's kernel", 8, nil, wire.NOTIFY),
    last = ProtoField.bool("vmmc.flags.last", "The last of a transfer", 8, nil, wire.LAST),
    reserved = ProtoField.uint8("vmmc.flags.reserved", "Reserved", base.HEX, nil, 0xfc),
    reason = ProtoField.uint8("vmmc.reason", "Left for", base.DEC, wire.reasons),
    src = ProtoField.uint16("vmmc.src", "From node"),
    dst = ProtoField.uint16("vmmc.dst", "To node"),
    node = ProtoField.uint16("vmmc.node", "Node (from or to)"),
    seq = ProtoField.uint32("vmmc.seq", "Sequence number"),
    export = ProtoField.uint32("vmmc.export", "Export"),
    generation = ProtoField.uint32("vmmc.generation", "Generation"),
    offset = ProtoField.uint32("vmmc.offset", "Offset in the export"),
    length = ProtoField.uint32("vmmc.length", "Length"),
    stores = ProtoField.uint32("vmmc.stores", "Stores"),
    transfer = ProtoField.uint32("vmmc.transfer", "Transfer"),
    count = ProtoField.uint32("vmmc.count", "Stores, or transfer"),
    data = ProtoField.bytes("vmmc.data", "Data"),
    type = ProtoField.uint32("vmmc.control.type", "Message", base.DEC, wire.messages),
    request = ProtoField.uint32("vmmc.control.request", "Request"),
    key = ProtoField.uint64("vmmc.control.key", "Key", base.HEX),
    name = ProtoField.string("vmmc.control.name", "Name of the export"),
    status = ProtoField.uint32("vmmc.control.status", "Answer", base.DEC, wire.statuses),
    given = ProtoField.uint32("vmmc.control.export", "Export"),
    given_generation = ProtoField.uint32("vmmc.control.generation", "Generation"),
    pages = ProtoField.uint16("vmmc.control.pages", "Pages"),
    use = ProtoField.uint16("vmmc.control.use", "What for", base.DEC, wire.uses),
    answer_in = ProtoField.framenum("vmmc.control.answer_in", "Answer in", base.NONE, frametype.RESPONSE),
    request_in = ProtoField.framenum("vmmc.control.request_in", "Request in", base.NONE, frametype.REQUEST),
    answer_time = ProtoField.relative_time("vmmc.control.time", "Time from the request"),
    import_name = ProtoField.string("vmmc.import.name", "Name of the export"),
    import_use = ProtoField.uint16("vmmc.import.use", "What for", base.DEC, wire.uses),
    import_in = ProtoField.framenum("vmmc.import.granted_in", "Import granted in"),
    pair = ProtoField.uint32("vmmc.pair", "Pair index (client and server)"),
    refused_in = ProtoField.framenum("vmmc.refused_in", "Refused in", base.NONE, frametype.RESPONSE),
    refuses = ProtoField.framenum("vmmc.refuses", "Refuses the packet in", base.NONE, frametype.REQUEST),
    hello_name = ProtoField.string("vmmc.hello.name", "Hello: the client's export"),
    hello_hash = ProtoField.uint64("vmmc.hello.hash", "Hello: hash of what is spoken", base.HEX),
    hello_node = ProtoField.uint16("vmmc.hello.node", "Hello: node"),
    hello_task = ProtoField.uint16("vmmc.hello.task", "Hello: task"),
    tail = ProtoField.uint32("vmmc.vrpc.tail", "Bytes put into this ring"),
    head = ProtoField.uint32("vmmc.vrpc.head", "Bytes taken from the other ring"),
    record = ProtoField.uint32("vmmc.vrpc.sequence", "Record"),
    record_length = ProtoField.uint32("vmmc.vrpc.length", "Bytes of the message"),
    skipped = ProtoField.uint32("vmmc.vrpc.skip", "Bytes left out at the ring's end"),
    part = ProtoField.framenum("vmmc.vrpc.part", "Part of the record in"),
    complete_in = ProtoField.framenum("vmmc.vrpc.complete_in", "Record complete in"),
    xid = ProtoField.uint32("vmmc.vrpc.xid", "RPC transaction", base.HEX),
    shrimp_seq = ProtoField.uint64("vmmc.shrimp.seq", "ShrimpRPC: call"),
    procedure = ProtoField.uint16("vmmc.shrimp.procedure", "ShrimpRPC: procedure"),
    shrimp_status = ProtoField.uint16("vmmc.shrimp.status", "ShrimpRPC: status", base.DEC, SHRIMP_STATUS),
    arguments = ProtoField.uint32("vmmc.shrimp.arguments", "ShrimpRPC: bytes of arguments"),
    results = ProtoField.uint32("vmmc.shrimp.results", "ShrimpRPC: bytes of results"),
    flag_in = ProtoField.framenum("vmmc.shrimp.flag_in", "ShrimpRPC: flag in"),
    stored_in = ProtoField.framenum("vmmc.shrimp.stored_in", "ShrimpRPC: stored in"),
    call_in = ProtoField.framenum("vmmc.shrimp.call_in", "ShrimpRPC: call in", base.NONE, frametype.REQUEST),
    reply_in = ProtoField.framenum("vmmc.shrimp.reply_in", "ShrimpRPC: reply in", base.NONE, frametype.RESPONSE),
    time = ProtoField.relative_time("vmmc.shrimp.time", "ShrimpRPC: time from the call"),
}

local G, S = expert.group, expert.severity
local E = {
    version = ProtoExpert.new("vmmc.version.unknown", "Unknown version", G.PROTOCOL, S.ERROR),
    kind = ProtoExpert.new("vmmc.kind.unknown", "Unknown kind", G.PROTOCOL, S.ERROR),
    flags = ProtoExpert.new("vmmc.flags.misplaced", "Flag that a packet of its kind does not have", G.PROTOCOL, S.WARN),
    reason = ProtoExpert.new("vmmc.reason.misplaced", "Reason that a packet of its kind does not have", G.PROTOCOL, S.WARN),
    length = ProtoExpert.new("vmmc.length.wrong", "Wrong length", G.MALFORMED, S.ERROR),
    page = ProtoExpert.new("vmmc.page.crossed", "Data go over a page", G.PROTOCOL, S.ERROR),
    message = ProtoExpert.new("vmmc.control.unknown", "Unknown message", G.PROTOCOL, S.ERROR),
    refused = ProtoExpert.new("vmmc.control.refused", "The import was refused", G.RESPONSE_CODE, S.WARN),
    unasked = ProtoExpert.new("vmmc.control.unasked", "Answer to no request that was seen", G.SEQUENCE, S.NOTE),
    sequence = ProtoExpert.new("vmmc.seq.gap", "Not the next in sequence", G.SEQUENCE, S.WARN),
    nack = ProtoExpert.new("vmmc.nack", "Refused", G.RESPONSE_CODE, S.WARN),
    unknown = ProtoExpert.new("vmmc.import.unknown", "Its import was not seen", G.SEQUENCE, S.NOTE),
    ring = ProtoExpert.new("vmmc.vrpc.broken", "The ring has no record there", G.MALFORMED, S.WARN),
    status = ProtoExpert.new("vmmc.shrimp.failed", "The call failed", G.RESPONSE_CODE, S.WARN),
}

wire.fields, wire.experts, wire.shrimp_statuses = F, E, SHRIMP_STATUS
wire.VRPC, wire.SHRIMPRPC = 1, 2
wire.HELLO_BYTES, wire.TAIL, wire.HEAD, wire.RING_SKIP = 64, 256, 264, 0xffffffff
return wire
