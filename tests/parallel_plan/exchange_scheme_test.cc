// Every exchange scheme on groups of many shapes: what exchange_rows() proves, shares that add up
// to the whole sum, weights that reach all ranks, and rows that are rejected.
#include "parallel/plan/exchange_scheme.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "core/index.h"
#include "tests/errors.h"

namespace concertina {
namespace {

/// Returns one rank, one host, one rank per host, equal and unequal hosts, consecutive and mixed.
std::vector<ExchangeShape> shapes() {
  std::vector<ExchangeShape> shapes{{{0}},
                                    {{0, 0}},
                                    {{0, 1}},
                                    {{4, 4, 4, 4, 4}},
                                    {{0, 1, 2, 3, 4, 5, 6}},
                                    {{0, 0, 1, 1}},
                                    {{0, 1, 0, 1}},
                                    {{0, 0, 0, 1}},
                                    {{2, 0, 0, 1, 1, 1, 1}},
                                    {{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}}};
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) {
    std::vector<int> hosts(1 + random() % 13);
    for (int& host : hosts) host = static_cast<int>(random() % 5);
    shapes.push_back({hosts});
  }
  return shapes;
}

template <class See>
void each_case(const See& see) {
  for (const Entry<ExchangeScheme>& scheme : exchange_schemes())
    for (const ExchangeShape& shape : shapes()) {
      SCOPED_TRACE(fmt::format("{} on hosts {}", scheme.name, fmt::join(shape.hosts, ",")));
      see(scheme, shape);
    }
}

TEST(EveryExchangeScheme, IsProven) {
  each_case([](const Entry<ExchangeScheme>& scheme, const ExchangeShape& shape) {
    const std::vector<ExchangeRow> rows = exchange_rows(scheme, shape);
    EXPECT_EQ(std::ssize(rows), shape.holders());
    for (const ExchangeRow& row : rows) EXPECT_FALSE(row.empty());
    EXPECT_STRNE(scheme.value.about, "");
  });
}

/// Uses only the messages: a set of leaves for each chunk on each holder, which a send removes.
TEST(EveryExchangeScheme, BringsEachLeafToEachOwnerOnce) {
  each_case([](const Entry<ExchangeScheme>& scheme, const ExchangeShape& shape) {
    const int holders = shape.holders();
    const std::vector<ExchangeRow> rows = exchange_rows(scheme, shape);
    std::map<std::pair<int, int>, std::multiset<int>> has;  // (holder, chunk) -> leaves
    for (int h = 0; h < holders; ++h)
      for (int chunk = 0; chunk < holders; ++chunk) has[{h, chunk}] = {h};
    for (std::size_t phase = 0; phase < rows[0].size(); ++phase) {
      auto next = has;
      for (int h = 0; h < holders; ++h)
        for (const ShareMove& send : rows[at(h)][phase].sends) {
          next[{send.peer, send.chunk}].insert(has[{h, send.chunk}].begin(),
                                               has[{h, send.chunk}].end());
          next[{h, send.chunk}].clear();
        }
      has = std::move(next);
    }
    std::multiset<int> all;
    for (int h = 0; h < holders; ++h) all.insert(h);
    for (int h = 0; h < holders; ++h)
      for (int chunk = 0; chunk < holders; ++chunk)
        EXPECT_EQ((has[{h, chunk}]), h == chunk ? all : std::multiset<int>()) << h << " " << chunk;
  });
}

TEST(EveryExchangeScheme, AddsUpInTheTreeWhateverEachHolderHas) {
  std::mt19937 random(3);
  each_case([&](const Entry<ExchangeScheme>& scheme, const ExchangeShape& shape) {
    const int holders = shape.holders(), leaves = holders + static_cast<int>(random() % 4);
    std::vector<Share> own(at(holders));
    for (int leaf = 0; leaf < leaves; ++leaf)
      for (const int use : {3, 7}) own[random() % own.size()].push_back({use, {leaf, leaf + 1}});
    for (Share& share : own) add_up(share, leaves);
    ShareFlow flow(scheme.value, shape, own, leaves);
    const Share whole{{3, {0, leaves}}, {7, {0, leaves}}};
    for (int h = 0; h < holders; ++h)
      EXPECT_EQ(flow.share(h, h, static_cast<int>(flow.row(h).size())), whole);
  });
}

TEST(EveryExchangeScheme, BringsWeightsToEverybodyOnce) {
  each_case([](const Entry<ExchangeScheme>& scheme, const ExchangeShape& shape) {
    const int holders = shape.holders();
    std::vector<ExchangeRow> rows;
    for (const ExchangeRow& row : exchange_rows(scheme, shape)) rows.push_back(backwards(row));
    std::vector<std::set<int>> has(at(holders));
    for (int h = 0; h < holders; ++h) has[at(h)] = {h};
    for (std::size_t phase = 0; phase < rows[0].size(); ++phase) {
      const auto before = has;
      for (int h = 0; h < holders; ++h) {
        int last = std::numeric_limits<int>::min();
        for (const ShareMove& send : rows[at(h)][phase].sends) {
          EXPECT_TRUE(before[at(h)].contains(send.chunk));
          EXPECT_TRUE(has[at(send.peer)].insert(send.chunk).second) << "twice";
          EXPECT_LE(std::exchange(last, send.step), send.step);
        }
      }
    }
    for (const std::set<int>& chunks : has) EXPECT_EQ(std::ssize(chunks), holders);
  });
}

TEST(ExchangeScheme, IsPrinted) {
  EXPECT_EQ(to_text(exchange_rows(ExchangeChoice{}, {4, 5, 6})),
            "1>1 0<2, 2>2 0<1\n"
            "2>2 1<0, 0>0 1<2\n"
            "0>0 2<1, 1>1 2<0\n");
  EXPECT_EQ(to_text(exchange_rows(ExchangeChoice{"hierarchical", {0, 0, 1, 1}}, {0, 1, 2, 3})),
            "1>1 3>1 0<1 2<1; 2>2 0<2\n"
            "0>0 2>0 1<0 3<0; 3>3 1<3\n"
            "1>3 3>3 0<3 2<3; 0>0 2<0\n"
            "0>2 2>2 1<2 3<2; 1>1 3<1\n");
}

/// Between hosts, a hierarchical exchange sends one sum if a host's leaves form a node.
TEST(ExchangeScheme, SendsOneSumPerHostWhereTheTreeAllows) {
  const ExchangeChoice choice{"hierarchical", {0, 0, 0, 0, 1, 1, 1, 1}};
  const ExchangeShape shape = choice.shape({0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<Share> own;
  for (int leaf = 0; leaf < 8; ++leaf) own.push_back({{0, {leaf, leaf + 1}}});
  ShareFlow flow(choice.find(), shape, own, 8);
  ASSERT_EQ(flow.row(1).size(), 2U);
  EXPECT_EQ(flow.row(1)[1].sends, (std::vector<ShareMove>{{1, 5, 5}}));
  EXPECT_EQ(flow.share(1, 5, 1), (Share{{0, {0, 4}}}));
}

/// Holders' rows with one fault each, and a part of the error message.
TEST(ExchangeScheme, RowsThatBreakARuleAreRefused) {
  using Break = void (*)(ExchangeRow & row, int me);
  static Break break_row = nullptr;
  const std::pair<Break, const char*> wrong[] = {
      {[](ExchangeRow& row, int me) {
         if (me == 1) row.emplace_back();
       },
       "holder 1 has a different number of phases"},
      {[](ExchangeRow& row, int me) {
         if (me == 2) row[0].receives.pop_back();
       },
       "holder 2 does not receive chunk 2 from holder 0 in step 2"},
      {[](ExchangeRow& row, int me) {
         if (me == 2) row[0].sends.pop_back();
       },
       "holder 2 does not send chunk 1 to holder 1 in step 2"},
      {[](ExchangeRow& row, int me) {
         if (me == 0) row[0].sends[1].step = 1;
       },
       "holder 0 has messages with two peers (1 and 2) in step 1"},
      {[](ExchangeRow& row, int me) {
         if (me == 0) std::swap(row[0].sends[0], row[0].sends[1]);
       },
       "holder 0 has step 1 after step 2"},
      {[](ExchangeRow& row, int me) {
         if (me == 0) row[0].sends[0].peer = 3;
       },
       "holder 0 uses the invalid holder 3 or chunk 1"},
      {[](ExchangeRow& row, int) { row.push_back(row[0]); }, "holder 0 sends chunk 1 twice"},
      {[](ExchangeRow& row, int me) {
         for (ShareMove& send : row[0].sends) send.chunk = me;
         for (ShareMove& receive : row[0].receives) receive.chunk = receive.peer;
       },
       "holder 0 sends its own chunk"},
      {[](ExchangeRow& row, int) { row = ExchangeRow(1); }, "holder 0 never sends chunk 1"},
      {[](ExchangeRow& row, int me) {  // all of chunk 2 through holder 0, in one phase
         row = ExchangeRow(1);
         if (me == 0) row[0] = {{{1, 1, 1}, {2, 2, 2}}, {{1, 2, 0}, {2, 1, 2}, {2, 1, 0}}};
         if (me == 1) row[0] = {{{2, 0, 2}, {2, 0, 0}}, {{1, 0, 1}, {2, 2, 1}}};
         if (me == 2) row[0] = {{{1, 0, 0}, {2, 1, 1}}, {{2, 0, 2}}};
       },
       "holder 0 receives a share of chunk 2 in phase 0, after sending that chunk"}};
  const Entry<ExchangeScheme> scheme{"mine", {.row = [](const ExchangeShape& shape, int me) {
                                       ExchangeRow row = exchange_schemes()[0].value.row(shape, me);
                                       break_row(row, me);
                                       return row;
                                     }}};
  for (const auto& [fault, what] : wrong) {
    break_row = fault;
    const Error error = input_error([&] { exchange_rows(scheme, {{0, 0, 0}}); });
    EXPECT_EQ(error.where(), "parallel.exchange");
    expect_has(error.message(), what);
    expect_has(error.message(), "exchange scheme 'mine' is invalid for 3 holders");
  }
}

TEST(ExchangeScheme, NamesAreListed) {
  const Error error = input_error([&] { (void)ExchangeChoice{"rings"}.find(); });
  expect_has(error.fix(), "all-to-all");
}

}  // namespace
}  // namespace concertina
