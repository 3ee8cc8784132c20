#include "net/tls/tls_link.hpp"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/log/log.hpp"
#include "net/sockets.hpp"

namespace taas::net {

namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr std::size_t kMaxSpareBuffer = 64u << 10;  // an empty buffer keeps at most this
constexpr milliseconds kClosingPatience{2000};
/// After a failed write, for what the peer has sent before it went away.
constexpr milliseconds kLastWordsPatience{1000};
constexpr const char* kClosedHere = "closed by this end";
constexpr const char* kClosedUnanswered = "closed by this end, and the peer did not answer";

std::string text_of(const asio::ip::tcp::endpoint& endpoint) { return endpoint.address().to_string(); }

class OwnedLink : public Link {
 public:
  explicit OwnedLink(std::shared_ptr<TlsLink> link) : link_(std::move(link)) {}
  ~OwnedLink() override { link_->release(); }

  void set_callbacks(Callbacks callbacks) override { link_->set_callbacks(std::move(callbacks)); }
  void send(std::string frame) override { link_->send(frame); }
  void close() override { link_->close(); }
  std::string peer_address() const override { return link_->peer_address(); }
  std::string local_address() const override { return link_->local_address(); }

 private:
  std::shared_ptr<TlsLink> link_;
};

}  // namespace

TlsLink::TlsLink(asio::ip::tcp::socket socket, std::shared_ptr<Tls> tls)
    : tls_(std::move(tls)), stream_(std::move(socket), tls_->context()), patience_(stream_.get_executor()) {
  Status ignored;  // a connection that has died meanwhile says so at the first read
  peer_address_ = text_of(stream_.next_layer().remote_endpoint(ignored));
  local_address_ = text_of(stream_.next_layer().local_endpoint(ignored));
}

void TlsLink::prove(std::function<void(const std::string&)> on_done) {
  const auto side = tls_->role() == Role::kClient ? asio::ssl::stream_base::client : asio::ssl::stream_base::server;
  stream_.async_handshake(side, [self = shared_from_this(), on_done = std::move(on_done)](const Status& status) {
    if (self->phase_ == Phase::kProving) self->on_proved(status, on_done);
  });
}

void TlsLink::on_proved(const Status& status, const std::function<void(const std::string&)>& on_done) {
  const auto failure = status                                        ? explain_handshake(status)
                       : !has_proved_secret(stream_.native_handle()) ? std::string("wrong secret")
                                                                     : std::string();
  log::debug(LogPart::kNet, "handshake of {} with {}: {}", local_address_, peer_address_,
             failure.empty() ? "done" : failure);
  if (!failure.empty()) return on_done(failure);
  phase_ = Phase::kOpen;
  on_done({});
}

void TlsLink::set_callbacks(Link::Callbacks callbacks) {
  if (phase_ != Phase::kOpen) return;
  callbacks_ = std::make_shared<const Link::Callbacks>(std::move(callbacks));
  read();
}

void TlsLink::read() {
  if (std::exchange(reading_, true)) return;
  stream_.async_read_some(asio::buffer(chunk_), [self = shared_from_this()](const Status& status, std::size_t size) {
    self->reading_ = false;
    if (self->phase_ != Phase::kClosed) self->on_read(status, size);
  });
}

void TlsLink::on_read(const Status& status, std::size_t size) {
  if (phase_ == Phase::kClosing && status) return finish(kClosedHere, false);
  if (status) return finish(explain(status), means_closed_by_peer(status));
  if (phase_ == Phase::kOpen) deliver({chunk_.data(), size});
  if (phase_ != Phase::kClosed) read();
}

/// Any callback may close the link, destroy it or replace its callbacks.
void TlsLink::deliver(std::string_view bytes) {
  frames_.append(bytes);
  while (phase_ == Phase::kOpen) {
    const auto frame = frames_.next();
    if (!frame) return finish(frame.error().message, false);
    if (!*frame) return;
    const auto calls = callbacks_;
    if (calls->on_frame) calls->on_frame(**frame);
  }
}

void TlsLink::send(std::string_view frame) {
  if (phase_ != Phase::kOpen) return;
  if (frame.size() > kMostFrameBytes) {
    return finish_within(milliseconds(0), fmt::format("a frame of {} bytes is too long to be sent", frame.size()));
  }
  append_frame(waiting_, frame);
  write();
}

/// What waits goes out together, once what went before is gone; a closing link says goodbye after the last of it.
void TlsLink::write() {
  if (writing_) return;
  if (gone_ == going_.size()) {
    gone_ = 0;
    going_.clear();
    if (going_.capacity() > kMaxSpareBuffer) going_.shrink_to_fit();
    going_.swap(waiting_);
  }
  writing_ = true;
  auto self = shared_from_this();
  if (!going_.empty()) {
    stream_.async_write_some(asio::buffer(going_.data() + gone_, going_.size() - gone_),
                             [self](const Status& status, std::size_t size) { self->on_written(status, size); });
  } else if (phase_ == Phase::kClosing) {
    stream_.async_shutdown([self](const Status&) {});  // the peer closes then, which read() sees
  } else {
    writing_ = false;
  }
}

void TlsLink::on_written(const Status& status, std::size_t size) {
  if (phase_ == Phase::kClosed) return;
  if (status && phase_ == Phase::kClosing) return finish(kClosedHere, false);
  if (status) return finish_within(kLastWordsPatience, explain(status));
  writing_ = false;
  gone_ += size;
  write();
}

void TlsLink::close() {
  if (phase_ != Phase::kOpen) return;
  phase_ = Phase::kClosing;
  finish_within(kClosingPatience, kClosedUnanswered);
  write();
  read();  // what still comes is thrown away: a socket closed with bytes unread would take back what was sent
}

void TlsLink::finish_within(milliseconds patience, std::string reason) {
  patience_.expires_after(patience);
  patience_.async_wait([self = shared_from_this(), reason = std::move(reason)](const Status& status) {
    if (!status) self->finish(reason, false);
  });
}

void TlsLink::finish(const std::string& reason, bool by_peer) {
  const auto calls = std::exchange(callbacks_, nullptr);
  if (phase_ == Phase::kClosed) return;
  log::debug(LogPart::kNet, "link with {} is over: {}{}", peer_address_, reason,
             by_peer ? " (closed by the peer)" : "");
  abandon();
  if (calls && calls->on_closed) calls->on_closed(reason, by_peer);
}

void TlsLink::release() {
  callbacks_ = nullptr;
  if (phase_ != Phase::kClosing) abandon();
}

void TlsLink::abandon() {
  phase_ = Phase::kClosed;
  patience_.cancel();
  Status ignored;
  stream_.next_layer().close(ignored);
}

std::unique_ptr<Link> make_link(std::shared_ptr<TlsLink> link) { return std::make_unique<OwnedLink>(std::move(link)); }

}  // namespace taas::net
