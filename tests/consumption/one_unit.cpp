bool cluster_unit();

int main() { return cluster_unit() ? 0 : 1; }
