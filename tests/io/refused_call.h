// Makes system calls fail with a seccomp filter, as on a file system or kernel without them. Also
// small disks.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>

namespace concertina {

/// From now on, the system call `number` fails with errno `code` in this process and its children;
/// if `argument` >= 0, only with that second argument. Returns false if no filter could be set.
inline bool refuse_call(int number, int code, int argument = -1) {
  const auto answer = static_cast<__u32>(SECCOMP_RET_ERRNO | code);
  constexpr __u32 kSecond = offsetof(seccomp_data, args) + sizeof(__u64);  // its low half
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(number), 0, 3),
                          BPF_STMT(BPF_RET | BPF_K, answer),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  if (argument >= 0) {
    filter[2] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSecond);
    filter[3] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(argument), 0, 1);
    filter[4] = BPF_STMT(BPF_RET | BPF_K, answer);
  }
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Mounts a tmpfs at `path`, only for this process and its children; `size`: "size=256k". Returns
/// false if that is not permitted.
inline bool mount_tmpfs(const std::string& path, const char* size, unsigned long flags = 0) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", path.c_str(), "tmpfs", flags, size) == 0;
}

/// Runs `body` in a child process; returns its result, or -signal if it was killed.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace concertina
