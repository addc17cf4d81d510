// Package install brings what the end-to-end tests, the demo and the benchmarks run
// besides Lakeweir into the repository's .cache folder: once, from package
// registries, in the exact versions that are named in the repository.
//
// It reaches the registries as pip, Go and Maven are set up on the machine. Java
// libraries are fetched without Maven, from lists that hold the checksum of each
// file; Maven only says where its repository is.
package install
