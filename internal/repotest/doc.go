// Package repotest holds what is true of the whole repository, as tests: the order of the packages, the form of files and
// names, and what the documents promise. A rule that can be checked needs no reviewer.
package repotest
