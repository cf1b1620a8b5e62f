// Package findings is what checks find, and how it is told: as a table, as JSON, as
// SARIF for code scanning, as JUnit XML for test reports, and as GitHub's annotation
// lines.
//
// A [Finding] names its rule, says where, what, what happens because of it, and what
// to do. [Baseline] keeps known findings out of the way; [Suppressions] reads the
// comments with which a file lets a rule pass, and wants a reason for each.
package findings
