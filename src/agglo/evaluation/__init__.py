"""Scores of trees and labels, and descriptions of clusters."""
