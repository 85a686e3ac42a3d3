// Bytes as they come from a connection: frames, and what is read of the head of each message. Whatever comes out of a frame goes back into the same bytes.
#include <weft/cluster/frame_reader.hpp>
#include <weft/cluster/frame_writer.hpp>
#include <weft/cluster/part_messages.hpp>
#include <weft/cluster/partition_codec.hpp>
#include <weft/ops/standard.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using weft::message_type;

const weft::op_registry& ops() {
  static const weft::op_registry all = weft::standard_ops();
  return all;
}

// Reads the head as what the message says it is, and as what the fuzzer chooses where that needs more than the head.
void read_head(const weft::message& m) {
  switch (weft::type_of(m)) {
    case message_type::hello:
    case message_type::welcome: (void)weft::hello_message::decode(m); break;
    case message_type::refused: (void)weft::decode_refusal(m); break;
    case message_type::open_session: (void)weft::open_session_message::decode(m); break;
    case message_type::close_session:
    case message_type::list_devices:
    case message_type::describe:
    case message_type::report: (void)weft::session_request::decode(m); break;
    case message_type::prepare: {
      weft::wire_reader from(m.head, "prepare");
      (void)weft::prepare_message::decode(from);
      const weft::graph into(ops());
      weft::decode_nodes(from, m.tensors, into, {1000, 100, 100});
      from.finish();
      break;
    }
    case message_type::run: (void)weft::run_message::decode(m); break;
    case message_type::reply: {
      const auto reply = weft::reply_message::decode(weft::message(m));
      weft::wire_reader body(reply.body);
      if (reply.request % 3 == 0) (void)weft::prepared_body::decode(reply.body);
      if (reply.request % 3 == 1) (void)weft::detail::decode_devices(body);
      if (reply.request % 3 == 2) (void)weft::decode_partitions(body, reply.tensors, ops());
      break;
    }
    case message_type::register_part: (void)weft::register_part_message::decode(m, weft::graph(ops()), {1000, 100, 100}); break;
    case message_type::unregister_part:
    case message_type::forget_session: (void)weft::decode_forget(m); break;
    case message_type::run_part: (void)weft::run_part_message::decode(m); break;
    case message_type::part_feeds: (void)weft::decode_part_feeds(m); break;
    case message_type::abort_part: (void)weft::abort_part_message::decode(m); break;
    case message_type::part_registered: (void)weft::part_registered_message::decode(m); break;
    case message_type::part_done: (void)weft::part_done_message::decode(m); break;
    case message_type::tensor: (void)weft::tensor_message::decode(m); break;
    case message_type::ready: (void)weft::decode_ready(m); break;
    default: break;
  }
}

void check_same(const weft::message& m, const char* bytes, std::size_t most) {
  weft::frame_writer again(m, {});
  std::string written;
  while (again.remaining() > 0) {
    iovec part{};
    again.gather(&part, 1, SIZE_MAX);
    written.append(static_cast<const char*>(part.iov_base), part.iov_len);
    again.advance(part.iov_len);
  }
  if (written.size() > most || std::memcmp(written.data(), bytes, written.size()) != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t slice = 1 + data[0] % 64U;
  const char* const begin = reinterpret_cast<const char*>(data + 1);
  weft::connection_options options;
  options.limits = {1U << 16, std::uint64_t{1} << 20, 256, 16};
  options.budget = std::make_shared<weft::receive_budget>(std::uint64_t{1} << 20);
  options.memory = nullptr;
  {
    weft::frame_reader reader(options);
    std::size_t given = 0, frame_begin = 0;
    try {
      for (weft::message m;;) {
        while (reader.next(m)) {
          if (!m.refused) {
            weft::frame_writer length(m, {});
            check_same(m, begin + frame_begin, size - 1 - frame_begin);
            frame_begin += static_cast<std::size_t>(length.remaining());
          } else {
            frame_begin = size;  // its tensors are gone: lengths are not known any more
          }
          try {
            read_head(m);
          } catch (const weft::error&) {
          }
          if (frame_begin > size - 1) return 0;
        }
        if (given == size - 1) break;
        iovec parts[weft::frame_reader::max_parts];
        const std::size_t count = reader.space(parts);
        std::size_t left = std::min(slice, size - 1 - given);
        std::size_t taken = 0;
        for (std::size_t i = 0; i < count && left > 0; ++i) {
          const std::size_t n = std::min(left, parts[i].iov_len);
          std::memcpy(parts[i].iov_base, begin + given + taken, n);
          taken += n;
          left -= n;
        }
        given += taken;
        reader.filled(taken);
      }
    } catch (const weft::error&) {
    }
  }
  if (options.budget->used() != 0) std::abort();
  return 0;
}
