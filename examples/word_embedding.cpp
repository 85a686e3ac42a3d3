// Word vectors learned from a generated text, by noise-contrastive pairs: a step reads and updates only the rows of the words in its batch, wherever they are stored.
//
//   word_embedding                         every task in this process
//   word_embedding weft://127.0.0.1:33335  on the cluster of task_server's default

#include <weft/weft.hpp>

#include <cmath>
#include <cstdint>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int topics = 10, words_per_topic = 100, vocabulary = topics * words_per_topic, width = 16, batch = 256;

// Sentences are about one topic each, so words of one topic appear together.
struct corpus {
  std::mt19937 random{1};
  int word_of(int topic) { return topic + topics * static_cast<int>(random() % words_per_topic); }
  void draw(std::vector<std::int32_t>& words, std::vector<std::int32_t>& others, std::vector<float>& together) {
    words.clear(), others.clear(), together.clear();
    for (int i = 0; i < batch; ++i) {
      const int topic = static_cast<int>(random() % topics);
      const bool pair = i % 2 == 0;
      words.push_back(word_of(topic));
      others.push_back(pair ? word_of(topic) : static_cast<std::int32_t>(random() % vocabulary));
      together.push_back(pair ? 1.f : 0.f);
    }
  }
};

// How often the nearest of all words is of the same topic.
double right_neighbours(const xt::xtensor<float, 2>& vectors) {
  int right = 0;
  const auto cosine = [&](int a, int b) {
    float ab = 0, aa = 0, bb = 0;
    for (std::size_t k = 0; k < width; ++k) {
      const float x = vectors(static_cast<std::size_t>(a), k), y = vectors(static_cast<std::size_t>(b), k);
      ab += x * y, aa += x * x, bb += y * y;
    }
    return ab / std::sqrt(aa * bb);
  };
  for (int word = 0; word < vocabulary; ++word) {
    int nearest = word == 0 ? 1 : 0;
    for (int other = 0; other < vocabulary; ++other)
      if (other != word && cosine(word, other) > cosine(word, nearest)) nearest = other;
    right += nearest % topics == word % topics ? 1 : 0;
  }
  return static_cast<double>(right) / vocabulary;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    weft::variable<float, 2> vectors;
    weft::with_device("/job:ps/task:0", [&] { vectors = weft::variable<float, 2>(weft::random_uniform({vocabulary, width}, -0.5f, 0.5f, 3), "vectors"); });
    auto worker = weft::with_device("/job:work/task:0");
    auto words = weft::placeholder<std::int32_t, 1>({batch}, "words"), others = weft::placeholder<std::int32_t, 1>({batch}, "others");
    auto together = weft::placeholder<float, 1>({batch}, "together");
    auto similarity = weft::reduce_sum(weft::gather(vectors, words) * weft::gather(vectors, others), weft::axis<1>);
    auto loss = weft::reduce_mean(weft::sigmoid_cross_entropy_with_logits(together, similarity));
    auto train = weft::adagrad_optimizer(1.f).minimize(loss);
    auto initialize = weft::global_variables_initializer();

    weft::session_options options;
    if (argc < 2) options.cluster = {{"ps", 1}, {"work", 1}};
    weft::session session(argc > 1 ? argv[1] : "", options);
    session.run(initialize);
    const double before = right_neighbours(session.run(vectors));
    auto step = session.make_callable(weft::feeds(words, others, together), loss, train);
    corpus text;
    std::vector<std::int32_t> a, b;
    std::vector<float> labels;
    for (int i = 0; i < 2000; ++i) {
      text.draw(a, b, labels);
      const float now = step(a, b, labels);
      if (i % 500 == 499) std::cout << "step " << i + 1 << ", loss " << now << '\n';
    }
    const double after = right_neighbours(session.run(vectors));
    std::cout << "nearest word of the same topic: " << 100 * before << " % at first, " << 100 * after << " % after training\n";
    return after > 0.9 ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "word_embedding: " << e.what() << '\n';
    return 1;
  }
}
