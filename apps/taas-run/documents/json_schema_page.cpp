#include "documents/json_schema_page.hpp"

#include <fmt/format.h>

#include "base/json/json_schema.hpp"
#include "command/documents.hpp"
#include "run/events/data_events.hpp"
#include "run/events/events.hpp"

namespace taas::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kSchemaColumns = 100;

/// What fits into a line is one.
void print_schema(const json::value& value, std::size_t indent, std::size_t used, std::string& text) {
  auto flat = published_text(value);
  const auto* object = value.if_object();
  const auto* array = value.if_array();
  if ((object == nullptr && array == nullptr) || indent + used + flat.size() < kSchemaColumns) {
    text += flat;
    return;
  }
  const auto line = [&text, indent](bool first) { text += (first ? "\n" : ",\n") + std::string(indent + 2, ' '); };
  text += object != nullptr ? "{" : "[";
  bool first = true;
  if (object != nullptr) {
    for (const auto& [name, member] : *object) {
      line(std::exchange(first, false));
      text += fmt::format("\"{}\": ", std::string_view(name));
      print_schema(member, indent + 2, name.size() + 4, text);
    }
  } else {
    for (const auto& element : *array) {
      line(std::exchange(first, false));
      print_schema(element, indent + 2, 0, text);
    }
  }
  text += "\n" + std::string(indent, ' ') + (object != nullptr ? "}" : "]");
}

json::object line_schema(std::string_view event, const json::object& members, const json::array& optional = {}) {
  json::array required{"t", "event"};
  for (const auto& member : members) {
    const json::value name(member.key());
    if (std::find(optional.begin(), optional.end(), name) == optional.end()) required.push_back(name);
  }
  json::object properties{{"t", JsonSchema::type("number")}, {"event", {{"const", event}}}};
  for (const auto& member : members) properties[member.key()] = member.value();
  return {{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}

void add_line_schemas(JsonSchema& schema) {
  auto events = schema.lines<run::Event>("event");
  for (auto& line : schema.lines<run::DataEvent>("event")) events.push_back(std::move(line));
  for (auto& line : schema.lines<std::variant<run::SourceSeen, run::OutputProgress>>("event"))
    events.push_back(std::move(line));
  auto& started = events.front().as_object();
  started["properties"].as_object()[kSchemaMember] = {{"const", kJsonSchema}};
  started["required"].as_array().emplace_back(kSchemaMember);
  events.push_back(line_schema("journal_gap", {{"lines", JsonSchema::type("integer")}}));
  schema.definitions["event"] = {{"oneOf", std::move(events)}};
  schema.definitions["action"] = {{"oneOf", schema.lines<run::Action>("action")}};
  schema.definitions["output"] = line_schema("output",
                                             {{"rank", JsonSchema::type("integer")},
                                              {"stream", {{"enum", {"stdout", "stderr"}}}},
                                              {"text", JsonSchema::type("string")},
                                              {"progress", {{"const", true}}},
                                              {"open", {{"const", true}}}},
                                             {"progress", "open"});
  schema.definitions["message"] = line_schema(
      "message", {{"level", {{"enum", {"debug", "info", "warning", "error"}}}}, {"text", JsonSchema::type("string")}});
}

json::object any_of(std::initializer_list<std::string_view> names) {
  json::array references;
  for (auto name : names) references.push_back(JsonSchema::reference(name));
  return {{"anyOf", std::move(references)}};
}

}  // namespace

std::string json_schema() {
  JsonSchema schema;
  add_line_schemas(schema);
  schema.definitions["journal_line"] = any_of({"event", "action"});
  schema.definitions["run_line"] = any_of({"output", "message", "event", "action"});
  schema.add_document<ErrorDocument>("error");
  schema.add_document<PlanDocument>("dry_run");
  schema.add_document<run::CheckReport>("check");
  schema.add_document<DevicesDocument>("devices");
  schema.add_document<TokenDocument>("token");
  schema.add_document<run::LookReport>("look");
  schema.add_document<RunsDocument>("runs");
  schema.add_document<ShowDocument>("show");
  schema.add_document<LogsDocument>("logs");
  schema.definitions["logs_line"] = schema.object<LoggedLine>();
  schema.add_document<StopDocument>("stop");
  schema.add_document<RerunDocument>("rerun");
  schema.add_document<DiffDocument>("diff");
  schema.add_document<CleanDocument>("clean");
  schema.add_document<SessionsDocument>("sessions");
  schema.add_document<DownDocument>("down");
  std::string text;
  print_schema(json::object{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                            {"title", fmt::format("What taas-run writes for programs, version {}", kJsonSchema)},
                            {"anyOf", any_of({"run_line", "error", "dry_run", "check", "devices", "token", "look",
                                              "runs", "show", "logs", "logs_line", "stop", "rerun", "diff", "clean",
                                              "sessions", "down"})["anyOf"]},
                            {"$defs", schema.definitions}},
               0, 0, text);
  return text + "\n";
}

}  // namespace taas::cli
