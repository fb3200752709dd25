#include "parallel/comm/mpi_line.h"

#include <algorithm>
#include <utility>

#include "core/exchange_order.h"
#include "parallel/comm/mpi_work.h"

namespace concertina {

void MpiLines::advance() {
  for (std::size_t i = 0; i < busy_.size();) {
    MpiLine& line = *busy_[i];
    line.advance();
    if (line.works_.empty())
      busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

MpiLine::MpiLine(std::shared_ptr<MpiLines> all) : all_(std::move(all)) {
  all_->busy_.reserve(++all_->lines_);
}

MpiLine::~MpiLine() {
  std::erase(all_->busy_, this);
  --all_->lines_;
}

void MpiLine::push(MpiWork& work) {
  if (works_.empty()) all_->busy_.push_back(this);
  works_.push_back(&work);
  post();
}

void MpiLine::forget(const MpiWork& work) {
  std::erase(works_, &work);
  if (works_.empty()) std::erase(all_->busy_, this);
}

void MpiLine::step_done(std::size_t bytes) {
  --steps_;
  bytes_ -= bytes;
}

void MpiLine::advance() {
  for (MpiWork* work : works_) work->poll();
  std::erase_if(works_, [](const MpiWork* work) { return work->done(); });
  post();
}

void MpiLine::post() {
  for (MpiWork* work : works_)
    while (!work->all_posted()) {
      if (!work->ready() || !may_begin_step(steps_, static_cast<double>(bytes_))) return;
      ++steps_;
      bytes_ += work->post_step();
    }
}

}  // namespace concertina
