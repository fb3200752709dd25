// A web server for one person on this machine: pages that only read.
// Invariants: it listens on 127.0.0.1 alone; an address without its token, which nobody can guess,
// is not found; a request that names another host (DNS rebinding), or is not GET or HEAD, is
// refused; a client that is slow or silent holds up nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace concertina {

struct PageAnswer {
  int status = 200;
  std::string type = "text/html; charset=utf-8", body{};
};

/// `path`: what follows the token, as "state"; `query`: its parameters.
using PageHandler = std::function<PageAnswer(const std::string& path,
                                             const std::map<std::string, std::string>& query)>;

struct PageListener;

class PageServer {
 public:
  /// `port`: 0 for any that is free. Throws Error{bad_input} if it cannot be had.
  explicit PageServer(std::uint16_t port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  /// "http://127.0.0.1:PORT/TOKEN/".
  const std::string& address() const;
  std::uint16_t port() const;
  /// Answers until `stop` says so, which is asked several times a second.
  void run(const PageHandler& handler, const std::function<bool()>& stop);

 private:
  const std::unique_ptr<PageListener> listener_;
};

}  // namespace concertina
