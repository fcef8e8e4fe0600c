// SPDX-License-Identifier: MIT
// What Ferry tells about itself: explain, print, describe, errors.
#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "collectives/table.hpp"
#include "include/ferry/ferry.h"
#include "lib/api/report.hpp"
#include "lib/api/request.hpp"
#include "lib/api/state.hpp"
#include "lib/config/config.hpp"
#include "lib/exec/device_memory.hpp"
#include "lib/topology/machine.hpp"

namespace ferry::core {
namespace {

int hand_out(const std::string& whole, char* text, size_t size, size_t* needed) {
  if (needed != nullptr) *needed = whole.size() + 1;
  if (text == nullptr || size == 0) return MPI_SUCCESS;
  const size_t length = std::min(whole.size(), size - 1);
  std::memcpy(text, whole.data(), length);
  text[length] = 0;
  return MPI_SUCCESS;
}

void require_handle(ferry_request request) {
  if (request == FERRY_REQUEST_NULL) {
    throw Failure(ErrorKind::request, "the handle is null", "ask before ferry_wait completes it");
  }
}

std::string explain(ferry_request_s& handle) {
  if (handle.persistent()) {
    return std::string(name_of(handle.plan->schedule().path)) + ": " + handle.plan->explain();
  }
  return handle.state->explain(handle.op);
}

Format format_of(ferry_format format) {
  switch (format) {
    case FERRY_FORMAT_TEXT:
      return Format::text;
    case FERRY_FORMAT_JSON:
      return Format::json;
    case FERRY_FORMAT_MARKDOWN:
      return Format::markdown;
  }
  throw Failure(ErrorKind::argument, "unknown format", "use one of enum ferry_format");
}

// Each kind of GPU that there is a module for; who has none is told why.
std::string describe_self_test() {
  std::string text;
  for (const auto& [kind, name] :
       {std::pair{DeviceKind::nvidia, "NVIDIA"}, std::pair{DeviceKind::amd, "AMD"}}) {
    std::string why;
    DeviceBackend* const backend = device_backend(kind, &why);
    if (backend == nullptr) {
      text += std::string("skip no ") + name + " device: " + why + "\n";
      continue;
    }
    std::istringstream found(backend->describe());
    for (std::string line; std::getline(found, line);) text += "info " + line + "\n";
    const std::string lines = backend->self_test();
    text += lines.empty() ? std::string("skip ") + name + ": its module has no self-test\n" : lines;
  }
  return text;
}

std::string describe(ferry_topic topic, ferry_format format) {
  if (topic == FERRY_TOPIC_SELF_TEST && format == FERRY_FORMAT_TEXT) return describe_self_test();
  if (topic == FERRY_TOPIC_RANK && format == FERRY_FORMAT_TEXT) return describe_process();
  if (topic == FERRY_TOPIC_ENVIRONMENT) return describe_config(format_of(format));
  if (topic != FERRY_TOPIC_MACHINE && topic != FERRY_TOPIC_TABLE) {
    throw Failure(ErrorKind::argument, "unknown topic", "use one of enum ferry_topic");
  }
  if (format_of(format) == Format::markdown) {
    throw Failure(ErrorKind::argument, "no Markdown for this topic", "use text or JSON");
  }
  if (topic == FERRY_TOPIC_TABLE) return describe_table(format_of(format), table_record());
  return describe_machine(format == FERRY_FORMAT_JSON ? MachineFormat::json : MachineFormat::text);
}

} // namespace
} // namespace ferry::core

using namespace ferry::core;

extern "C" {

int ferry_explain(ferry_request request, char* text, size_t size) {
  return guarded({"ferry_explain"}, [&] {
    require_handle(request);
    return hand_out(explain(*request), text, size, nullptr);
  });
}

int ferry_comm_explain(MPI_Comm comm, char* text, size_t size) {
  return guarded({"ferry_comm_explain", comm}, [&] {
    const StateHolder* state = find_state(comm);
    return hand_out(
        state != nullptr ? (*state)->explain_last()
                         : std::string("local: no collective has run on this communicator yet"),
        text, size, nullptr);
  });
}

int ferry_print(ferry_request request, char* text, size_t size, size_t* needed) {
  return guarded({"ferry_print"}, [&] {
    require_handle(request);
    if (!request->persistent()) {
      throw Failure(
          ErrorKind::request, "the handle is not persistent", "print handles of *_init calls");
    }
    return hand_out(print(request->plan->schedule()), text, size, needed);
  });
}

int ferry_describe(
    enum ferry_topic topic, enum ferry_format format, char* text, size_t size, size_t* needed) {
  return guarded(
      {"ferry_describe"}, [&] { return hand_out(describe(topic, format), text, size, needed); });
}

const char* ferry_error_text(void) {
  return last_error_text();
}

} // extern "C"
