#ifndef WEFT_FORMAT_CHROME_TRACE_HPP
#define WEFT_FORMAT_CHROME_TRACE_HPP
// The trace of a step in the JSON that chrome://tracing and Perfetto show: a process for each task, a row for each thread, an arrow for each value that crossed.

#include <weft/core/config.hpp>
#include <weft/core/step_trace.hpp>

#include <string>

namespace weft {

/// The trace as JSON. Nodes that overlap on a row, as those that wait do, stand on rows of their own: `waiting 0`, `waiting 1`. Equal traces give equal texts.
std::string to_chrome_trace(const step_trace& trace);
/// Writes that to a file, whose folder is made where it is missing. Throws what `file_writer` throws.
void write_chrome_trace(const std::string& path, const step_trace& trace);

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <weft/format/file_access.hpp>
#include <weft/format/json_writer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::detail {

// Nodes that wait overlap; each goes to the first row that is free when it begins.
class waiting_rows {
 public:
  std::size_t row_for(const traced_node& n) {
    for (std::size_t i = 0; i < free_from_.size(); ++i)
      if (free_from_[i] <= n.begin) return take(i, n);
    free_from_.push_back(0);
    return take(free_from_.size() - 1, n);
  }

 private:
  std::size_t take(std::size_t row, const traced_node& n) {
    free_from_[row] = n.end;
    return row;
  }
  std::vector<std::int64_t> free_from_;
};

class chrome_trace_writer {
 public:
  std::string run(const step_trace& trace) {
    out_.begin('{').key("displayTimeUnit").string("ms").key("otherData").begin('{').key("step").small(trace.step).end('}').key("traceEvents").begin('[');
    for (const task_trace& t : trace.tasks) {
      write_task(t);
      ++process_;
    }
    out_.end(']').end('}');
    return out_.take();
  }

 private:
  // Rows of nodes that wait come behind those of threads.
  static constexpr std::int64_t first_waiting_row = 1000;

  // The beginning of an event of this task.
  json_writer& event(const char* phase, const std::string& name, std::int64_t row) {
    return out_.begin('{').key("ph").string(phase).key("name").string(name).key("pid").small(process_).key("tid").small(row);
  }
  void name_of(const char* what, const std::string& name, std::int64_t row) { event("M", what, row).key("args").begin('{').key("name").string(name).end('}').end('}'); }
  static double microseconds(std::int64_t t) { return static_cast<double>(t) / 1000.; }

  // Whether it was given to its row's thread for all of its time: others wait for an answer.
  static bool waits(const traced_node& n) { return n.op == "_Recv" || n.op.find("Dequeue") != std::string::npos || n.op.find("Enqueue") != std::string::npos || n.op.find("Barrier") != std::string::npos; }

  void write_task(const task_trace& t) {
    name_of("process_name", t.task, 0);
    waiting_rows rows;
    std::vector<std::int64_t> named;
    for (const traced_node* n : by_beginning(t)) {
      const std::int64_t row = waits(*n) ? first_waiting_row + static_cast<std::int64_t>(rows.row_for(*n)) : n->thread;
      if (std::find(named.begin(), named.end(), row) == named.end()) {
        named.push_back(row);
        name_of("thread_name", row >= first_waiting_row ? "waiting " + std::to_string(row - first_waiting_row) : "thread " + std::to_string(row), row);
      }
      write_node(*n, row);
    }
  }

  void write_node(const traced_node& n, std::int64_t row) {
    event("X", n.name, row).key("cat").string(n.op).key("ts").real(microseconds(n.begin)).key("dur").real(microseconds(n.end - n.begin));
    out_.key("args").begin('{').key("op").string(n.op).key("device").string(n.device);
    if (n.edge >= 0) out_.key("value").string(n.value).key("bytes").small(n.bytes).key(n.op == "_Send" ? "to" : "from").string(n.peer);
    if (n.passed >= 0) out_.key(n.op == "_Send" ? "sent" : "arrived").real(microseconds(n.passed));
    out_.end('}').end('}');
    if (n.edge < 0) return;
    // The arrow goes from where the value was given to where it was had.
    const bool sends = n.op == "_Send";
    event(sends ? "s" : "f", n.value, row).key("cat").string("transfer").key("id").small(n.edge).key("ts").real(microseconds(sends ? n.begin : n.end));
    if (!sends) out_.key("bp").string("e");
    out_.end('}');
  }

  json_writer out_{0, true};
  std::int64_t process_ = 0;
};

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_chrome_trace(const step_trace& trace) { return detail::chrome_trace_writer().run(trace); }

WEFT_DECL void write_chrome_trace(const std::string& path, const step_trace& trace) {
  detail::make_folders(path);
  write_whole_file(path, to_chrome_trace(trace));
}

}  // namespace weft
#endif

#endif
