#include <weft/graph/word.hpp>

#include <weft/graph/attr.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using weft::detail::word;

TEST_CASE("word: equal texts are one, whoever says them") {
  const std::string built = std::string("send_") + "device";
  CHECK(word("send_device").text() == "send_device");
  CHECK(&word("send_device").text() == &word(built).text());
  CHECK(word("").text().empty());
}

TEST_CASE("word: a long one lives as long as one of its holders") {
  const std::string text(100, 'x');
  word held("a");
  {
    const word first(text);
    held = first;
    const word second = first;
    CHECK(&second.text() == &first.text());
  }
  CHECK(held.text() == text);
}

TEST_CASE("word: a program that says more words than are kept finds each as it was") {
  std::vector<word> words;
  for (int i = 0; i < 5000; ++i) words.emplace_back("word " + std::to_string(i));
  for (int i = 0; i < 5000; ++i) CHECK(words[static_cast<std::size_t>(i)].text() == "word " + std::to_string(i));
  words.erase(words.begin() + 10, words.end());
  CHECK(words.back().text() == "word 9");
}

TEST_CASE("word: attributes compare by text where words are not kept") {
  const std::string text(80, 'y');
  CHECK(weft::attr_map{{text, 1}} == weft::attr_map{{text, 1}});
  CHECK(weft::attr_map{{text, 1}} != weft::attr_map{{text + "y", 1}});
}
