// Package controllers has the one constant that Cilium uses of the package of this name.
package controllers

// DerivedServiceAnnotation is set on a ServiceImport to reference the derived Service.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
