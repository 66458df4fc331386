"""Scores of trees and flat clusterings, and descriptions of clusters."""
