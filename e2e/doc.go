// Package e2e runs the real program against real services, kills them, and reads the
// lake that it leaves by other engines. Its tests need packages from registries and
// minutes, so they run under `make e2e` only.
package e2e
