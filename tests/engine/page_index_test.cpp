// The tree of cached pages by itself: what moves to the host, what is lost, and in which order.
#include "engine/serve/page_index.h"

#include <catch2/catch_test_macros.hpp>

using namespace greta;

namespace {

constexpr uint32_t kPages = 8, kNone = PageIndex::kNone, kRoot = PageIndex::kRoot;

struct Tree {
  PagePool pages{{0, 1, kPages}, 1, kPages}, windows{{64, 1, kPages}, 1, kPages};
  bool copies_fail = false;
  std::vector<uint32_t> lost;        // nodes, in their order
  std::vector<uint32_t> kept_slots;  // that pages were copied to
  PageIndex index;

  explicit Tree(uint32_t slots, bool sides = false)
      : index(pages, {PageIndex::Sides::Of::Windows, sides ? &windows : nullptr}, kPages,
              {.slots = slots,
               .keep =
                   [this](const Executor::CachePage&, uint32_t slot) {
                     kept_slots.push_back(slot);
                     return copies_fail ? fail(Code::Device, "no copy") : Status{};
                   },
               .lose = [this](uint32_t node) { lost.push_back(node); }}) {}

  static std::vector<int32_t> text(int32_t token) { return std::vector<int32_t>(kPageTokens, token); }
  uint32_t find(uint32_t parent, int32_t token) const { return index.find(parent, 0, text(token)); }
  uint32_t add(uint32_t parent, int32_t token, bool with_side = false) {
    Executor::CachePage page{pages.take()};
    if (with_side) page.window = windows.take();
    const uint32_t node = index.add(parent, 0, text(token), page);
    pages.drop(page.full);
    if (with_side) windows.drop(page.window);
    return node;
  }
  void bring_back(uint32_t node, bool with_side = false) {
    Executor::CachePage page{pages.take()};
    if (with_side) page.window = windows.take();
    index.bring_back(node, page);
    if (with_side) windows.drop(page.window);
  }
  // The node whose page is given up next.
  uint32_t give_up() {
    std::vector<bool> there;
    for (uint32_t node = 0; node < kPages; ++node) there.push_back(index.page(node) != kNone);
    REQUIRE(index.give_up_page());
    for (uint32_t node = 0; node < kPages; ++node)
      if (there[node] && index.page(node) == kNone) return node;
    return kNone;
  }
};

}  // namespace

TEST_CASE("page index: the page that was not used for longest goes first, leaves before their parents",
          "[serve]") {
  Tree t(0);
  const uint32_t a = t.add(kRoot, 1), b = t.add(kRoot, 2), c = t.add(kRoot, 3);
  t.index.pin(a);
  const uint32_t below = t.add(a, 4);
  CHECK(t.index.idle_pages() == 3);
  t.index.unpin(a);
  CHECK(t.index.idle_pages() == 4);
  t.index.pin(b);
  t.index.unpin(b);
  t.index.pin(c);
  CHECK(t.give_up() == below);
  CHECK(t.give_up() == a);  // the oldest, as soon as nothing is below it
  CHECK(t.give_up() == b);
  CHECK_FALSE(t.index.give_up_page());  // c is in use
  CHECK(t.lost == std::vector<uint32_t>{below, a, b});
  CHECK(t.find(kRoot, 1) == kNone);
  CHECK(t.find(kRoot, 3) == c);
  CHECK(t.pages.free_pages() == kPages - 1);
}

TEST_CASE("page index: a page that comes back from the host was used last", "[serve]") {
  Tree t(3);
  const uint32_t a = t.add(kRoot, 1), b = t.add(kRoot, 2), c = t.add(kRoot, 3);
  CHECK(t.give_up() == a);
  CHECK(t.index.slot(a) != kNone);
  CHECK(t.index.kept_pages() == 1);
  t.bring_back(a);
  CHECK(t.index.slot(a) == kNone);
  CHECK(t.index.kept_pages() == 0);
  CHECK(t.index.idle_pages() == 3);
  CHECK(t.give_up() == b);
  CHECK(t.give_up() == c);
  CHECK(t.give_up() == a);
  CHECK(t.lost.empty());
  CHECK(t.index.kept_pages() == 3);
}

TEST_CASE("page index: a slot whose copy fails can be used again", "[serve]") {
  Tree t(1);
  const uint32_t a = t.add(kRoot, 1), b = t.add(kRoot, 2);
  t.copies_fail = true;
  CHECK(t.give_up() == a);
  CHECK(t.lost == std::vector<uint32_t>{a});
  CHECK(t.index.kept_pages() == 0);
  t.copies_fail = false;
  CHECK(t.give_up() == b);
  CHECK(t.lost == std::vector<uint32_t>{a});
  CHECK(t.index.kept_pages() == 1);
  CHECK(t.find(kRoot, 2) == b);
  CHECK(t.kept_slots == std::vector<uint32_t>{0, 0});
}

TEST_CASE("page index: where no slot is free, the kept leaf that was not used for longest goes", "[serve]") {
  Tree t(2);
  const uint32_t a = t.add(kRoot, 1), b = t.add(kRoot, 2), c = t.add(kRoot, 3);
  CHECK(t.give_up() == a);
  CHECK(t.give_up() == b);
  CHECK(t.lost.empty());
  CHECK(t.give_up() == c);
  CHECK(t.lost == std::vector<uint32_t>{a});
  CHECK(t.find(kRoot, 1) == kNone);
  CHECK(t.index.kept_pages() == 2);
  // What is below a page is lost with it.
  Tree deep(1);
  const uint32_t top = deep.add(kRoot, 1);
  deep.index.pin(top);
  const uint32_t leaf = deep.add(top, 2);
  deep.index.unpin(top);
  CHECK(deep.give_up() == leaf);
  deep.copies_fail = true;
  CHECK(deep.give_up() == top);
  CHECK(deep.find(kRoot, 1) == kNone);
  CHECK(deep.index.kept_pages() == 0);
  CHECK(deep.pages.free_pages() == kPages);
}

TEST_CASE("page index: the page of a window goes to the host with its node, if there is one", "[serve]") {
  for (const bool side : {false, true}) {
    Tree t(2, true);
    const uint32_t a = t.add(kRoot, 1, side);
    CHECK(t.index.has_side(a) == side);
    CHECK(t.windows.free_pages() == kPages - side);
    CHECK(t.give_up() == a);
    CHECK(t.index.has_side(a) == side);
    CHECK(t.index.side(a) == kNone);
    CHECK(t.windows.free_pages() == kPages);
    t.bring_back(a, side);
    CHECK(t.index.has_side(a) == side);
    CHECK((t.index.side(a) != kNone) == side);
    t.index.drop_side(a);
    CHECK_FALSE(t.index.has_side(a));
    CHECK(t.windows.free_pages() == kPages);
  }
}

TEST_CASE("page index: the side that was not used for longest is given up first", "[serve]") {
  Tree t(0, true);
  const uint32_t a = t.add(kRoot, 1, true), b = t.add(kRoot, 2, true);
  t.index.use_side(a);
  CHECK(t.index.give_up_side());
  CHECK_FALSE(t.index.has_side(b));
  CHECK(t.index.has_side(a));
  CHECK(t.index.give_up_side());
  CHECK_FALSE(t.index.give_up_side());
}

TEST_CASE("page index: texts of different salts, and texts that differ late, have nodes of their own",
          "[serve]") {
  Tree t(0);
  std::vector<int32_t> text = Tree::text(1);
  const Executor::CachePage first{t.pages.take()}, second{t.pages.take()}, third{t.pages.take()};
  const uint32_t a = t.index.add(kRoot, 0, text, first), b = t.index.add(kRoot, 7, text, second);
  CHECK(a != b);
  CHECK(t.index.salt(b) == 7);
  text.back() = 2;
  CHECK(t.index.find(kRoot, 0, text) == kNone);
  const uint32_t c = t.index.add(kRoot, 0, text, third);
  CHECK(c != a);
  CHECK(t.index.add(kRoot, 0, text, first) == c);  // it stays as it is
  CHECK(t.index.page(c) == third.full);
  std::vector<int32_t> read;
  t.index.text_of(c, &read);
  CHECK(read == text);
}
