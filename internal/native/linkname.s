// This file lets the Go compiler accept functions without a body, which are provided by the runtime.
