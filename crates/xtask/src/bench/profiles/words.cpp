// A program with deep stacks, templates and inlined functions, which make its recordings expensive to
// symbolize: builds trees of named nodes, walks them recursively, and sorts the counts.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

struct Node {
  std::string name;
  std::vector<Node> below;
  double weight;
};

static Node build(int depth, int width) {
  Node node{"node" + std::to_string(depth * 131 + width), {}, double(depth)};
  for (int i = 0; depth > 0 && i < width; i++) node.below.push_back(build(depth - 1, width));
  return node;
}

static double walk(const Node& node, int depth) {
  double sum = node.weight;
  for (auto& below : node.below) sum += walk(below, depth + 1) * std::sqrt(double(depth + 1));
  return sum;
}

int main(int argc, char** argv) {
  double seconds = argc > 1 ? std::atof(argv[1]) : 5, sink = 0;
  auto start = std::chrono::steady_clock::now();
  auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  while (passed() < seconds) {
    Node root = build(8, 4);
    sink += walk(root, 0);
    std::map<std::string, double> counts;
    std::function<void(const Node&)> count = [&](const Node& node) {
      counts[node.name] += node.weight;
      for (auto& below : node.below) count(below);
    };
    count(root);
    std::vector<double> values;
    for (auto& entry : counts) values.push_back(entry.second);
    std::sort(values.begin(), values.end(), [](double a, double b) { return std::sin(a) < std::sin(b); });
    sink += values[0];
  }
  std::printf("%f\n", sink);
}
