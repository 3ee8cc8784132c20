#include "run/messages/journal.hpp"

#include <boost/json/object.hpp>
#include <type_traits>

#include "base/json/published_json.hpp"
#include "base/type_name.hpp"

namespace taas::run {
namespace {

namespace json = boost::json;

template <class AnyEvent>
std::string line_of(const AnyEvent& event, Instant run_start) {
  const PublishedWriter writer(run_start);
  return std::visit(
      [&]<class T>(const T& happened) {
        json::object object{{"t", writer.write(happened.at)}, {"event", type_name<T>()}};
        if constexpr (std::is_same_v<T, RunStarted>) object[kSchemaMember] = kJsonSchema;
        writer.write_members(happened, object);
        return published_text(object);
      },
      event);
}

}  // namespace

std::string journal_line(const Event& event, Instant run_start) { return line_of(event, run_start); }
std::string journal_line(const DataEvent& event, Instant run_start) { return line_of(event, run_start); }
std::string journal_line(const SourceSeen& event, Instant run_start) {
  return line_of(std::variant<SourceSeen>(event), run_start);
}

std::string journal_line(const OutputProgress& event, Instant run_start) {
  return line_of(std::variant<OutputProgress>(event), run_start);
}

std::string journal_line(const Action& action, Instant at, Instant run_start) {
  const PublishedWriter writer(run_start);
  return std::visit(
      [&]<class T>(const T& decided) {
        json::object object{{"t", writer.write(at)}, {"action", type_name<T>()}};
        writer.write_members(decided, object);
        return published_text(object);
      },
      action);
}

}  // namespace taas::run
