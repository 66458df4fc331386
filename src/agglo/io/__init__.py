"""Files: tables, trees and folders of runs, written atomically."""
