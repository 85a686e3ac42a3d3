bool local_unit();
bool cluster_unit();

int main() { return local_unit() && cluster_unit() ? 0 : 1; }
