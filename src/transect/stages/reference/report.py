"""References stand beside the trainings that are held against them: no section of their own."""
