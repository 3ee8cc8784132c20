#include "run/coordinator/silence.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace silence_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

const AgentId kOne{1};
const AgentId kOther{2};

Silence two_agents() {
  Silence silence({2500ms, 500ms});
  for (AgentId agent : {kOne, kOther}) {
    silence.on_sign_of_life(agent, at_ms(0));
    silence.watch(agent, at_ms(0));
  }
  return silence;
}

}  // namespace

TEST_CASE("who is not heard for too long is silent, and the check comes when the next one could be") {
  auto silence = two_agents();
  CHECK(silence.next_check() == at_ms(2500));
  silence.on_sign_of_life(kOther, at_ms(1000));
  CHECK(silence.check(at_ms(2499)).lost.empty());
  CHECK(silence.check(at_ms(2500)).lost == std::vector{kOne});
  CHECK(silence.loss_of_silent(kOne, at_ms(2500)).reason == "no sign of life for 2.5 s");
  CHECK(silence.next_check() == at_ms(3500));
}

TEST_CASE("an agent without a link is never silent") {
  Silence silence({2500ms, 500ms});
  silence.on_sign_of_life(kOne, at_ms(0));
  CHECK_FALSE(silence.next_check().has_value());
  silence.on_sign_of_life(kOther, at_ms(0));
  silence.watch(kOther, at_ms(0));
  CHECK(silence.check(at_ms(9000)).lost == std::vector{kOther});
}

TEST_CASE("an agent that is forgotten is not waited for") {
  auto silence = two_agents();
  silence.forget(kOne);
  CHECK(silence.check(at_ms(2500)).lost == std::vector{kOther});
}

TEST_CASE("a silence is told after three seconds, once, and with it those that began a little later") {
  Silence silence({30s, 500ms});
  for (int number : {1, 2, 3}) {
    silence.on_sign_of_life(AgentId{number}, at_ms(number * 100));
    silence.watch(AgentId{number}, at_ms(number * 100));
  }
  CHECK(silence.next_check() == at_ms(3100));
  auto found = silence.check(at_ms(3100));
  CHECK(found.lost.empty());
  CHECK(found.silent == std::vector{AgentId{1}, AgentId{2}, AgentId{3}});
  CHECK(silence.next_check() == at_ms(30100));
  silence.on_sign_of_life(AgentId{2}, at_ms(8000));
  CHECK(silence.next_check() == at_ms(8500));
  CHECK(silence.take_returned().agents.empty());
  silence.on_sign_of_life(AgentId{1}, at_ms(8200));
  silence.on_sign_of_life(AgentId{3}, at_ms(8100));
  auto returned = silence.take_returned();
  CHECK(returned.agents == std::vector{AgentId{1}, AgentId{2}, AgentId{3}});
  CHECK(returned.silence == 8100ms);
  CHECK(silence.take_returned().agents.empty());
}

TEST_CASE("who is back while another one stays away is told soon, and so is a second silence") {
  Silence silence({30s, 500ms});
  for (AgentId agent : {kOne, kOther}) {
    silence.on_sign_of_life(agent, at_ms(0));
    silence.watch(agent, at_ms(0));
  }
  CHECK(silence.check(at_ms(3000)).silent.size() == 2);
  silence.on_sign_of_life(kOther, at_ms(5000));
  CHECK(silence.take_returned().agents.empty());
  silence.check(at_ms(5500));
  CHECK(silence.take_returned().agents == std::vector{kOther});
  CHECK(silence.check(at_ms(8000)).silent == std::vector{kOther});
  CHECK(silence.next_check() == at_ms(30000));
  CHECK(silence.check(at_ms(30000)).lost == std::vector{kOne});
}

TEST_CASE("nothing is told of a short silence") {
  Silence silence({30s, 500ms});
  silence.on_sign_of_life(kOne, at_ms(0));
  silence.watch(kOne, at_ms(0));
  silence.on_sign_of_life(kOne, at_ms(300));
  CHECK(silence.check(at_ms(3000)).silent.empty());
  CHECK(silence.next_check() == at_ms(3300));
  silence.on_sign_of_life(kOne, at_ms(3200));
  CHECK(silence.take_returned().agents.empty());
}

TEST_CASE("the end of a link is a sign of life, but not after a silence") {
  auto silence = two_agents();
  auto ended = silence.loss_of_link({kOne, "its agent has ended", true, at_ms(600)}, at_ms(600));
  CHECK(ended.reason == "its agent has ended");
  CHECK(ended.last_sign_of_life == at_ms(600));
  CHECK(ended.gone_at == at_ms(1100));
  auto broken = silence.loss_of_link({kOne, "its link broke", false, at_ms(1500)}, at_ms(1500));
  CHECK(broken.reason == "no sign of life for 1.5 s, then its link broke");
  CHECK(broken.last_sign_of_life == at_ms(0));
  CHECK(broken.gone_at == at_ms(2500));
}

TEST_CASE("agents are not blamed for the time in which this process stood still") {
  auto silence = two_agents();
  CHECK_FALSE(silence.excuse(990ms, at_ms(1090)));
  CHECK_FALSE(silence.is_excused(at_ms(1090)));
  CHECK(silence.next_check() == at_ms(3490));
  CHECK(silence.excuse(2000ms, at_ms(3100)));
  CHECK(silence.is_excused(at_ms(5599)));
  CHECK_FALSE(silence.is_excused(at_ms(5600)));
  CHECK(silence.reason_of_excused() == "the coordinator had not answered it for 2.0 s");
}

}  // namespace silence_test
