#include "experiments/serve/page_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace concertina {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = boost::asio::ip::tcp;

constexpr std::chrono::seconds kClientSeconds{10};
constexpr std::chrono::milliseconds kPause{200};  // after a connection that could not be accepted
constexpr std::uint64_t kMostHeader = 16 << 10;

/// 128 random bits.
std::string new_token() {
  std::random_device random;
  std::string token;
  for (int word = 0; word < 4; ++word) token += fmt::format("{:08x}", random());
  return token;
}

/// In a time that says nothing of where they differ.
bool same_token(const std::string& one, const std::string& other) {
  if (one.size() != other.size()) return false;
  int differ = 0;
  for (std::size_t i = 0; i < one.size(); ++i) differ |= one[i] ^ other[i];
  return differ == 0;
}

struct Target {
  std::string token, path;
  std::map<std::string, std::string> query;
};

/// "/TOKEN/PATH?a=b&c=d".
Target parse_target(std::string_view text) {
  Target target;
  const std::size_t question = text.find('?');
  std::string_view path = text.substr(0, question);
  if (path.starts_with('/')) path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  target.token = path.substr(0, slash);
  if (slash != path.npos) target.path = path.substr(slash + 1);
  for (std::string_view rest = question == text.npos ? "" : text.substr(question + 1);
       !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    const std::size_t equals = one.find('=');
    if (equals != one.npos) target.query.emplace(one.substr(0, equals), one.substr(equals + 1));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  return target;
}

}  // namespace

/// What a server of one token answers.
struct PageRules {
  std::string token;
  std::uint16_t port = 0;
  const PageHandler* handler = nullptr;

  PageAnswer answer(const http::request<http::string_body>& request) const {
    const std::string host(request[http::field::host]);
    if (host != fmt::format("127.0.0.1:{}", port) && host != fmt::format("localhost:{}", port))
      return {403, "text/plain", "another host was asked for\n"};
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return {405, "text/plain", "this only reads\n"};
    const Target target = parse_target(std::string(request.target()));
    if (!same_token(target.token, token)) return {404, "text/plain", "not found\n"};
    try {
      return (*handler)(target.path, target.query);
    } catch (const Error& error) {
      return {500, "text/plain; charset=utf-8",
              fmt::format("{}\nat: {}\ntry: {}\n", error.message(), error.where(), error.fix())};
    } catch (const std::exception& error) {  // such as a lack of memory: others are answered
      log::warn("/{} was not answered: {}", target.path, error.what());
      return {500, "text/plain; charset=utf-8", fmt::format("{}\n", error.what())};
    }
  }
};

namespace {

/// One connection, with one request.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const PageRules& rules) : stream_(std::move(socket)), rules_(rules) {
    parser_.header_limit(kMostHeader);
    parser_.body_limit(0);
  }
  void start() {
    stream_.expires_after(kClientSeconds);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->reply();
                     });
  }

 private:
  void reply() {
    const http::request<http::string_body>& request = parser_.get();
    PageAnswer answer = rules_.answer(request);
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::content_type, answer.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("X-Frame-Options", "DENY");
    response_.keep_alive(false);
    response_.body() = std::move(answer.body);
    response_.prepare_payload();
    if (request.method() == http::verb::head) response_.body().clear();
    stream_.expires_after(kClientSeconds);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code, std::size_t) {
                        beast::error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> response_;
  const PageRules& rules_;
};

}  // namespace

struct PageListener {
  boost::asio::io_context context{1};
  tcp::acceptor acceptor{context};
  boost::asio::steady_timer pause{context};
  PageRules rules{};
  std::string address{};

  void accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (!error) {
        std::make_shared<Session>(std::move(socket), rules)->start();
        return accept();
      }
      pause.expires_after(kPause);  // such as for a descriptor, of which there are no more
      pause.async_wait([this](beast::error_code) { accept(); });
    });
  }
};

PageServer::PageServer(std::uint16_t port) : listener_(std::make_unique<PageListener>()) {
  const tcp::endpoint endpoint(boost::asio::ip::address_v4::loopback(), port);
  beast::error_code error;
  listener_->acceptor.open(endpoint.protocol(), error);
  if (!error) listener_->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) listener_->acceptor.bind(endpoint, error);
  if (!error) listener_->acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error)
    throw_input(fmt::format("port {} of 127.0.0.1 cannot be had: {}", port, error.message()),
                "--port", "--port 0, which takes any that is free");
  listener_->rules = {new_token(), listener_->acceptor.local_endpoint().port(), nullptr};
  listener_->address =
      fmt::format("http://127.0.0.1:{}/{}/", listener_->rules.port, listener_->rules.token);
}

PageServer::~PageServer() = default;

const std::string& PageServer::address() const {
  return listener_->address;
}

std::uint16_t PageServer::port() const {
  return listener_->rules.port;
}

void PageServer::run(const PageHandler& handler, const std::function<bool()>& stop) {
  constexpr std::chrono::milliseconds kPoll{200};
  listener_->rules.handler = &handler;
  listener_->accept();
  while (!stop()) listener_->context.run_for(kPoll);
}

}  // namespace concertina
