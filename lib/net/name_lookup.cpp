#include "net/name_lookup.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "base/quiet_thread.hpp"
#include "net/sockets.hpp"

namespace taas::net {
namespace {

namespace asio = boost::asio;
using Answer = Result<std::vector<asio::ip::address>>;

/// Who waits for an answer. As long as it is in the list of a question, its event loop is there.
struct Asker : std::enable_shared_from_this<Asker> {
  Asker(asio::io_context& io, OnAddresses callback)
      : loop_has_work(asio::make_work_guard(io)), on_done(std::move(callback)) {}

  void tell_later(const Answer& answer) {
    asio::post(loop_has_work.get_executor(), [weak = weak_from_this(), answer] {
      const auto self = weak.lock();
      if (!self || !self->on_done) return;
      self->loop_has_work.reset();
      std::exchange(self->on_done, nullptr)(answer);
    });
  }

  asio::executor_work_guard<asio::io_context::executor_type> loop_has_work;
  OnAddresses on_done;  // null once told
};

/// The questions of this process that are under way, by name. Threads may outlive everything else.
struct Questions {
  std::mutex mutex;
  std::map<std::string, std::vector<std::shared_ptr<Asker>>> under_way;
};

Questions& questions() {
  static auto* all = new Questions;
  return *all;
}

Answer ask_the_system(const std::string& name) {
  asio::io_context none;
  boost::system::error_code failed;
  const auto found = asio::ip::tcp::resolver(none).resolve(name, "", failed);
  if (failed) {
    auto error = unavailable_error(explain(failed));
    if (means_unknown_name(failed)) error.system_errno = EADDRNOTAVAIL;
    return error;
  }
  std::vector<asio::ip::address> addresses;
  for (const auto& entry : found) addresses.push_back(entry.endpoint().address());
  return addresses;
}

void answer(const std::string& name, const Answer& answer) {
  const std::lock_guard lock(questions().mutex);
  auto askers = questions().under_way.extract(name);
  for (const auto& asker : askers.mapped()) asker->tell_later(answer);
}

class Question : public Connecting {
 public:
  Question(asio::io_context& io, std::string name, OnAddresses on_done)
      : name_(std::move(name)), asker_(std::make_shared<Asker>(io, std::move(on_done))) {
    const std::lock_guard lock(questions().mutex);
    auto [question, is_new] = questions().under_way.try_emplace(name_);
    is_new_ = is_new;
    question->second.push_back(asker_);
  }
  ~Question() override {
    asker_->on_done = nullptr;
    const std::lock_guard lock(questions().mutex);
    auto question = questions().under_way.find(name_);  // it stays until it is answered, with or without askers
    if (question != questions().under_way.end()) std::erase(question->second, asker_);
  }

  void begin() {
    if (!is_new_) return;
    std::thread thread;
    auto begun = begin_quietly(thread, [name = name_] { answer(name, ask_the_system(name)); });
    begun ? thread.detach() : answer(name_, begun.error());
  }

 private:
  std::string name_;
  std::shared_ptr<Asker> asker_;
  bool is_new_ = false;
};

}  // namespace

std::unique_ptr<Connecting> look_up(asio::io_context& io, const std::string& name, OnAddresses on_done) {
  auto question = std::make_unique<Question>(io, name, std::move(on_done));
  question->begin();
  return question;
}

}  // namespace taas::net
