"""Sessions in pods of a Kubernetes cluster as environments, and the server that runs in such a pod."""
