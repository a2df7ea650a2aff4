"""What transect is besides its modules, by the paths of a checkout: studies, environments, profiles, rules, programs.

In a checkout these are links to the folders at its top; in an installed package the files themselves.
"""
