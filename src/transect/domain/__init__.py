"""The words of the project as types: cell, record, metric, study, system."""
