// How training would scale: a table of steps per second by number of workers, synchronous, synchronous with backup workers and asynchronous, and the same as a chart.
//
//   scaling --parameters 240e6 --compute 0.05 --servers 17 --workers 1,25,50,100,200
//   scaling --speeds this_machine.txt --chart scaling.svg        speeds as `calibrate` prints them
//   scaling --null_step                                          steps without work beside the figures that TensorFlow's authors published

#include <weft/graph.hpp>
#include <weft/simulate.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct series {
  std::string name, color;
  std::vector<double> values;
};

// A line chart with the number of workers to the right and steps per second upward, both logarithmic.
std::string chart(const std::vector<int>& workers, const std::vector<series>& lines, const std::string& title) {
  constexpr double width = 640, height = 400, left = 70, right = 20, top = 40, bottom = 50;
  double least = 1e300, most = 0;
  for (const series& s : lines)
    for (const double v : s.values) least = std::min(least, v), most = std::max(most, v);
  const double low = std::pow(10, std::floor(std::log10(least))), high = std::pow(10, std::ceil(std::log10(most * 1.0001)));
  const double first = std::log(workers.front()), last = std::max(std::log(workers.back()), first + 1e-9);
  const auto x = [&](int w) { return left + (width - left - right) * (std::log(w) - first) / (last - first); };
  const auto y = [&](double v) { return height - bottom - (height - top - bottom) * std::log(v / low) / std::log(high / low); };
  std::ostringstream out;
  out.precision(6);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"" << width / 2 << "\" y=\"20\" text-anchor=\"middle\" font-size=\"14\">" << title << "</text>\n";
  for (double v = low; v <= high * 1.0001; v *= 10)
    out << "<line x1=\"" << left << "\" x2=\"" << width - right << "\" y1=\"" << y(v) << "\" y2=\"" << y(v) << "\" stroke=\"#ddd\"/>\n<text x=\"" << left - 6 << "\" y=\"" << y(v) + 4 << "\" text-anchor=\"end\">" << v
        << "</text>\n";
  for (const int w : workers)
    out << "<line x1=\"" << x(w) << "\" x2=\"" << x(w) << "\" y1=\"" << top << "\" y2=\"" << height - bottom << "\" stroke=\"#eee\"/>\n<text x=\"" << x(w) << "\" y=\"" << height - bottom + 16
        << "\" text-anchor=\"middle\">" << w << "</text>\n";
  out << "<text x=\"" << (left + width - right) / 2 << "\" y=\"" << height - 12 << "\" text-anchor=\"middle\">workers</text>\n<text x=\"16\" y=\"" << (top + height - bottom) / 2
      << "\" text-anchor=\"middle\" transform=\"rotate(-90 16 " << (top + height - bottom) / 2 << ")\">steps per second</text>\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << lines[i].color << "\" points=\"";
    for (std::size_t k = 0; k < workers.size(); ++k) out << x(workers[k]) << "," << y(lines[i].values[k]) << " ";
    out << "\"/>\n<text x=\"" << left + 10 << "\" y=\"" << top + 16 + 16 * static_cast<double>(i) << "\" fill=\"" << lines[i].color << "\">" << lines[i].name << "</text>\n";
  }
  out << "</svg>\n";
  return out.str();
}

// Figures of "TensorFlow: A System for Large-Scale Machine Learning" (OSDI 2016), section 6.2: milliseconds of a synchronous step without work, 16 parameter servers.
void null_steps() {
  struct published {
    const char* name;
    double bytes;
    int workers;
    double milliseconds;
  };
  static constexpr published rows[] = {{"scalar", 4, 1, 1.8}, {"scalar", 4, 100, 8.8}, {"dense 100 MB", 100e6, 1, 147}, {"dense 100 MB", 100e6, 100, 613}, {"dense 1 GB", 1e9, 1, 1010}, {"dense 1 GB", 1e9, 100, 7160}};
  std::printf("%-14s %8s %14s %14s %8s\n", "step", "workers", "published, ms", "predicted, ms", "ratio");
  for (const published& row : rows) {
    weft::training_setup s;
    s.parameter_servers = 16;
    s.workers = row.workers;
    s.parameter_bytes = s.gradient_bytes = row.bytes;
    // 10 Gbit/s to each task, and the cost of a call that the scalar steps show.
    s.link = {4e-4, 1.25e9};
    s.seconds_per_message = 3.5e-5;
    s.apply_bytes_per_second = 4e9;
    s.steps = 20;
    const double predicted = simulate_training(s).median * 1e3;
    std::printf("%-14s %8d %14.1f %14.1f %8.2f\n", row.name, row.workers, row.milliseconds, predicted, predicted / row.milliseconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string speeds, file;
  std::vector<int> workers = {1, 2, 4, 8, 16, 32, 64, 128};
  weft::training_setup setup;
  setup.parameter_servers = 16;
  setup.parameter_bytes = 95e6;
  setup.compute_seconds = 0.1;
  setup.straggler_sigma = 0.1;
  setup.straggler_chance = 0.01;
  setup.straggler_factor = 3;
  double backups = 0.05;
  bool null_step = false;
  CLI::App app("Predicts how training with parameter servers scales with the number of workers.");
  app.add_option("--parameters", setup.parameter_bytes, "Bytes of the model; gradients have as many")->capture_default_str();
  app.add_option("--compute", setup.compute_seconds, "Seconds that a worker computes per step")->capture_default_str();
  app.add_option("--servers", setup.parameter_servers, "Parameter servers")->capture_default_str();
  app.add_option("--workers", workers, "Numbers of workers")->delimiter(',')->capture_default_str();
  app.add_option("--sigma", setup.straggler_sigma, "Spread of the computing time")->capture_default_str();
  app.add_option("--straggler_chance", setup.straggler_chance, "Chance that a worker is slow in a step")->capture_default_str();
  app.add_option("--straggler_factor", setup.straggler_factor, "How slow it is then")->capture_default_str();
  app.add_option("--backups", backups, "Backup workers, as a share of the workers")->capture_default_str();
  app.add_option("--bandwidth", setup.link.bytes_per_second, "Bytes per second of a task's network")->capture_default_str();
  app.add_option("--latency", setup.link.latency, "Seconds of a message on the way")->capture_default_str();
  app.add_option("--steps", setup.steps, "Steps to play")->capture_default_str();
  app.add_option("--speeds", speeds, "A file of speeds, whose link is taken");
  app.add_option("--chart", file, "Writes the table as an SVG picture");
  app.add_flag("--null_step", null_step, "Compares with published steps without work instead");
  CLI11_PARSE(app, argc, argv);
  try {
    if (null_step) return null_steps(), 0;
    if (!speeds.empty()) {
      std::ifstream in(speeds);
      if (!in) throw std::runtime_error("cannot read '" + speeds + "'");
      std::ostringstream text;
      text << in.rdbuf();
      setup.link = weft::parse_cost_model(text.str()).link;
    }
    setup.gradient_bytes = setup.parameter_bytes;
    std::sort(workers.begin(), workers.end());
    std::vector<series> lines = {{"synchronous", "#1f77b4", {}}, {"synchronous with backups", "#2ca02c", {}}, {"asynchronous", "#d62728", {}}};
    std::printf("%8s %14s %14s %14s   steps per second\n", "workers", "synchronous", "with backups", "asynchronous");
    for (const int w : workers) {
      for (std::size_t i = 0; i < lines.size(); ++i) {
        weft::training_setup s = setup;
        s.workers = w;
        s.mode = i == 2 ? weft::training_mode::asynchronous : weft::training_mode::synchronous;
        if (i == 1) s.workers += s.backup_workers = std::max(1, static_cast<int>(backups * w));
        lines[i].values.push_back(simulate_training(s).steps_per_second * (i == 2 ? 1 : w));  // of all workers together
      }
      std::printf("%8d %14.2f %14.2f %14.2f\n", w, lines[0].values.back(), lines[1].values.back(), lines[2].values.back());
    }
    if (!file.empty()) {
      std::ofstream out(file);
      out << chart(workers, lines, "Batches per second by number of workers");
      if (!out.flush()) throw std::runtime_error("cannot write '" + file + "'");
      std::cout << file << " written\n";
    }
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "scaling: " << e.what() << '\n';
    return 1;
  }
}
