#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "training/backend/c10_error.hpp"

namespace taas {

/// What is wrong and what to do, from the text of an error of c10d::Reducer: its own advice is for the options of
/// Python, and in part wrong (a static graph is told to look for unused parameters).
std::string advice_for(const std::string& reducer_text, bool static_graph);

/// Runs `call`; an error of the reducer comes out as a taas::Exception with our advice.
template <class Call>
void reducing(bool static_graph, Call&& call) {
  try {
    call();
  } catch (const Exception&) {
    throw;
  } catch (const c10::DistError& error) {
    throw CommunicationError(one_line(error));
  } catch (const c10::Error& error) {
    throw Exception(advice_for(one_line(error), static_graph));
  }
}

}  // namespace taas
