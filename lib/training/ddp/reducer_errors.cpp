#include "training/ddp/reducer_errors.hpp"

#include <string_view>

namespace taas {
namespace {

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// "rank 0: b, c", from "… did not receive grad for rank 0: b, c Parameter indices which did not …".
std::string unmarked(const std::string& text) {
  const std::string_view mark = "did not receive grad for ";
  const auto at = text.find(mark);
  if (at == std::string::npos) return "this rank";
  const auto begin = at + mark.size();
  return text.substr(begin, text.find(" Parameter indices", begin) - begin);
}

std::string unfinished(const std::string& text, bool static_graph) {
  const auto who = "parameters that got no gradient in the last backward on " + unmarked(text) + ": ";
  return who + (static_graph ? "they had one in the first iteration, and static_graph is for the same parameters in "
                               "each; use them in the loss, or leave static_graph out"
                             : "use them in the loss, or set find_unused_parameters");
}

/// "Parameter at index 3 with name conv.weight has been marked as ready twice." → "parameter conv.weight".
std::string marked_parameter(const std::string& text) {
  const std::string_view mark = "with name ";
  const auto at = text.find(mark);
  if (at == std::string::npos) return "a parameter";
  const auto begin = at + mark.size();
  return "parameter " + text.substr(begin, text.find(' ', begin) - begin);
}

std::string marked_twice(const std::string& text, bool static_graph) {
  return marked_parameter(text) + " got its gradient twice in one backward: " +
         (static_graph ? "static_graph is for the same graph in each iteration; leave it out, or run each backward once"
                       : "run one backward for each forward (earlier ones in a scope of no_sync), and return from "
                         "forward all tensors that the loss is made of; where parts of the graph are run again in "
                         "each backward, set static_graph");
}

}  // namespace

std::string advice_for(const std::string& text, bool static_graph) {
  if (says(text, "Expected to have finished reduction in the prior iteration")) return unfinished(text, static_graph);
  if (says(text, "Expected to mark a variable ready only once") || says(text, "marked as ready twice")) {
    return marked_twice(text, static_graph);
  }
  if (says(text, "Your training graph has changed in this iteration")) {
    return "the graph is not that of the first iteration, and static_graph is for the same in each: a parameter that "
           "was unused then is used now, or is used more often; leave static_graph out";
  }
  return text;
}

}  // namespace taas
